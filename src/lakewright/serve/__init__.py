"""The resident server of a project: a warm Spark session, triggers, an HTTP API and the operator's page.

It holds no truth: what it knows comes from the project, the lake and the manifest. What it does, it does as
the command line: by requests, each a command line that runs in a process of its own.
"""
