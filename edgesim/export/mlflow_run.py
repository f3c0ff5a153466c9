"""A run for MLflow, through its own client: rounds are steps, timestamps are simulated milliseconds."""

import os

from edgesim.analysis.runs import RunFolder, flat_settings
from edgesim.base.errors import EdgesimError
from edgesim.base.optional import needed
from edgesim.export.measures import measures

EXPERIMENT = "edgesim"
_AT_ONCE = 1_000
"""Metrics of one call, at most: a limit of MLflow."""
_LONGEST = 6_000
"""Characters of a parameter, at most: a limit of MLflow."""


def write_mlflow(run: RunFolder, tracking_uri: str) -> str:
    """Log the settings and measures of a run as a run of the experiment ``edgesim``; answers its id.

    Raises `EdgesimError` if MLflow is not installed, or refuses.
    """
    # Before the import, which would report its use to the library's makers, and then tell of every table that it makes.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    mlflow, entities = needed("mlflow", "mlflow"), needed("mlflow.entities", "mlflow")
    measured = measures(run)
    values = [
        entities.Metric(name, row.value, int(1_000 * row.t_s), row.round)
        for name, table in measured.by_name.items()
        for row in table.itertuples()
    ]
    settings = [entities.Param(key, str(value)[:_LONGEST]) for key, value in flat_settings(run.config).items()]
    try:
        client = mlflow.MlflowClient(tracking_uri=tracking_uri)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        place = experiment.experiment_id if experiment else client.create_experiment(EXPERIMENT)
        run_id = client.create_run(place, start_time=0, run_name=run.folder.resolve().name).info.run_id
        for first in range(0, len(settings), 100):
            client.log_batch(run_id, params=settings[first : first + 100])
        for first in range(0, len(values), _AT_ONCE):
            client.log_batch(run_id, metrics=values[first : first + _AT_ONCE])
        client.set_terminated(run_id, end_time=int(1_000 * measured.end_s))
    except mlflow.exceptions.MlflowException as error:
        raise EdgesimError(f"mlflow {tracking_uri}: {str(error).strip().splitlines()[0]}") from None
    return str(run_id)
