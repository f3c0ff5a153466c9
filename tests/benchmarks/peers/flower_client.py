"""Flower's client; a module of its own, so that an actor keeps data and network between its tasks."""

from functools import cache
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn
from work import Work

client_app = ClientApp()


@cache
def kept(folder: str, threads: int) -> tuple[Work, nn.Module]:
    """The work with its tensors and a network, made once per actor."""
    torch.set_num_threads(threads)
    work = Work.read(Path(folder))
    return work, work.new_network()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """One epoch of the client that the node stands for."""
    config = message.content["config"]
    work, network = kept(str(config["folder"]), int(config["threads"]))
    network.load_state_dict(message.content["arrays"].to_torch_state_dict())
    client = int(context.node_config["partition-id"])
    work.train(network, client)
    metrics = MetricRecord({"num-examples": len(work.clients[client][1])})
    content = RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)
