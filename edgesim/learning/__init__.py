"""Learning on devices and server: data, partition, models, local training, evaluation.

`datasets`, `partitions`, `federation`, `batches`, `payload`, `interface` and `timing_only` import no torch.
"""
