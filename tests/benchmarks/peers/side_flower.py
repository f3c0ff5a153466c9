"""Flower: its simulation engine on Ray, with FedAvg of the Message API, and so many actors of so many threads."""

import time
from collections.abc import Iterable

import flwr
from flower_client import client_app
from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from work import asked, report

server_app = ServerApp()


class TimedFedAvg(FedAvg):
    """FedAvg that notes when each round begins."""

    def __init__(self, clients: int) -> None:
        super().__init__(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)
        self.begins_s: list[float] = []

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As FedAvg does it."""
        self.begins_s.append(time.perf_counter())
        return super().configure_train(server_round, arrays, config, grid)


@server_app.main()
def serve(grid: Grid, context: Context) -> None:
    """All rounds, and the report."""
    strategy = TimedFedAvg(len(work.clients))
    network = work.new_network()
    result = strategy.start(
        grid,
        ArrayRecord(network.state_dict()),
        num_rounds=work.all_rounds,
        train_config=ConfigRecord({"folder": str(work.folder.absolute()), "threads": threads}),
    )
    ends_s = [*strategy.begins_s, time.perf_counter()]
    network.load_state_dict(result.arrays.to_torch_state_dict())
    report(work, ends_s, work.accuracy(network), flwr=flwr.__version__)


if __name__ == "__main__":
    work, processes, threads = asked()
    run_simulation(
        server_app,
        client_app,
        num_supernodes=len(work.clients),
        backend_config={
            "client_resources": {"num_cpus": threads, "num_gpus": 0.0},
            "init_args": {"num_cpus": processes * threads, "include_dashboard": False},
        },
    )
