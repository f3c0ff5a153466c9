"""The devices: their positions, compute times, energy and batteries, and the topology of stations and servers."""
