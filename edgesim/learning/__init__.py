"""What devices learn: data, partition, models, local training, evaluation.

`datasets`, `federation`, `batches`, `payload`, `interface` and `timing_only` import no torch.
"""
