"""The processing manifest: records, the items they fold to, and the interface of its back ends. Pure."""
