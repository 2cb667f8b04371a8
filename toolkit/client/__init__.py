"""Access to a node: transport, retries, ABI store, the operations and their results."""
