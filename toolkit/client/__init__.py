"""The client of a ledger node: transport, retries, module ABIs, read operations and their results."""
