"""The manifest's back ends, one module or package each, and the heartbeat that renews a process's leases."""
