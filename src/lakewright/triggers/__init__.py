"""Triggers: when runs start by themselves, and the state that the manifest keeps of them."""
