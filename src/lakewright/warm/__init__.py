"""The warm session: Spark in a resident JVM, and workers that run the command lines of others on it.

A server keeps it (`session.WarmSession`) and begins command lines on it (`requests.Requests`); other commands
reach it by `lakewright_client`.
"""
