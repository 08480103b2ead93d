"""The manifest's back ends, one module each, and what keeps a process's leases alive."""
