"""The HTTP side of a server: who may ask what, the JSON API, the metrics."""
