"""Spark itself: Java, the jars, the archive of classes, and the session that starts with them."""
