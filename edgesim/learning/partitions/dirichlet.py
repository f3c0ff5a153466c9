"""Label skew by a Dirichlet law per class: random shares of each class for the devices.

Yurochkin et al., "Bayesian nonparametric federated learning of neural networks", ICML 2019; the practice of Hsu et
al., arXiv 1909.06335, and of NIID-Bench (Li et al., ICDE 2022, "distribution-based label imbalance").
"""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.learning.partitions.dealing import by_class, cut, fill_empty_hands, hands, shuffled_pool
from edgesim.learning.partitions.partition import Alpha, Partition
from edgesim.streams import Streams


class Dirichlet(Partition):
    """Shares p_c ~ Dir_N(alpha) over the devices for each class c; sizes differ as the shares do.

    The plain law of the papers: NIID-Bench's program gives a device no further class once it has its mean share of
    the samples; this one does not.
    """

    alpha: Alpha = 0.5
    """Concentration: the smaller, the more uneven the shares."""

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Every sample of the pool goes to one device; see `Partition.divide`."""
        domains = np.zeros_like(labels)
        return self.divide_domains(labels, domains, class_count, device_count, samples_per_device, streams)

    @override
    def divide_domains(
        self,
        labels: Integers,
        domains: Integers,
        class_count: int,
        device_count: int,
        samples_per_device: int | None,
        streams: Streams,
    ) -> list[list[Integers]]:
        """The shares of a class are the same in all domains, as the DPFL benchmark deals Office-Caltech."""
        pool = shuffled_pool(labels, device_count, samples_per_device, streams)
        domain_count = int(domains.max()) + 1
        groups = labels * domain_count + domains
        pool = by_class(pool, groups)
        random = streams.generator("partition/dirichlet")
        shares = random.dirichlet(np.full(device_count, self.alpha), class_count)
        totals = np.bincount(groups[pool], minlength=class_count * domain_count).reshape(class_count, domain_count)
        counts = cut(shares[:, None], totals)
        owner = np.repeat(np.tile(np.arange(device_count), totals.size), counts.reshape(-1))
        return [hands(pool, fill_empty_hands(owner, device_count, streams), device_count)]
