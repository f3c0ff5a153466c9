"""pfl-research: FederatedAveraging on its simulated back end, on so many processes (torch.distributed) of threads."""

import os
import subprocess
import sys
import time
from importlib import metadata

import torch
from torch import Tensor, nn
from torch.nn import functional
from work import asked, report

work, processes, threads = asked()
if processes > 1 and "PFL_WORKER_RANK" not in os.environ:
    addresses = {"PFL_WORKER_ADDRESSES": ",".join(f"localhost:{8710 + rank}" for rank in range(processes))}
    others = [
        subprocess.Popen([sys.executable, *sys.argv], env=os.environ | addresses | {"PFL_WORKER_RANK": str(rank)})
        for rank in range(1, processes)
    ]
    os.environ |= addresses | {"PFL_WORKER_RANK": "0"}
torch.set_num_threads(threads)

from pfl.aggregate.simulate import SimulatedBackend  # noqa: E402
from pfl.algorithm.base import NNAlgorithmParams  # noqa: E402
from pfl.algorithm.federated_averaging import FederatedAveraging  # noqa: E402
from pfl.callback.base import TrainingProcessCallback  # noqa: E402
from pfl.data.federated_dataset import FederatedDataset  # noqa: E402
from pfl.data.pytorch import PyTorchTensorDataset  # noqa: E402
from pfl.data.sampling import get_user_sampler  # noqa: E402
from pfl.hyperparam import NNTrainHyperParams  # noqa: E402
from pfl.metrics import Metrics  # noqa: E402
from pfl.model.pytorch import PyTorchModel  # noqa: E402


class Network(nn.Module):
    """The network as pfl wants it: with a loss and metrics of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = work.new_network()

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        return self.layers(images)

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Mean cross entropy of a batch."""
        return functional.cross_entropy(self(images), labels)

    def metrics(self, images: Tensor, labels: Tensor) -> dict:
        """None: the model is tested at the end, outside."""
        return {}


class Clock(TrainingProcessCallback):
    """Notes when each round ended."""

    def __init__(self) -> None:
        self.ends_s = [time.perf_counter()]

    def after_central_iteration(self, aggregate_metrics: Metrics, model: PyTorchModel, **_: object) -> tuple:
        """Never stops the training."""
        self.ends_s.append(time.perf_counter())
        return False, Metrics()


def data_of(client: int) -> PyTorchTensorDataset:
    """A client's samples in a new random order, since pfl's data sets keep theirs."""
    images, labels = work.clients[client]
    order = torch.randperm(len(labels))
    return PyTorchTensorDataset((images[order], labels[order]))


network, clock = Network(), Clock()
clients = list(range(len(work.clients)))
data = FederatedDataset(data_of, get_user_sampler("minimize_reuse", clients))
FederatedAveraging().run(
    NNAlgorithmParams(
        central_num_iterations=work.all_rounds,
        evaluation_frequency=work.all_rounds + 1,
        train_cohort_size=len(clients),
        val_cohort_size=None,
    ),
    SimulatedBackend(training_data=data, val_data=data),
    PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0)),
    NNTrainHyperParams(local_num_epochs=1, local_learning_rate=work.lr, local_batch_size=work.batch),
    callbacks=[clock],
    send_metrics_to_platform=False,
)
if os.environ.get("PFL_WORKER_RANK", "0") == "0":
    report(work, clock.ends_s, work.accuracy(network), pfl=metadata.version("pfl"))
