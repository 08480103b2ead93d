"""What is due in a project: its facts are observed, a plan is made of them, and its steps are taken."""
