"""The discrete-event engine: simulated time, the server and the devices at work (SimPy lives here alone)."""
