"""Talk to a node: transport, retries, ABI store, the verbs and their results."""
