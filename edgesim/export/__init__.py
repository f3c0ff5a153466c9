"""Runs in the forms of other tools: a Perfetto trace, CSV, TensorBoard, MLflow."""
