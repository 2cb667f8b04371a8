"""Executions on a node's state at a version: forks, and replays of committed transactions.

Module map, for readers of the code:

- `_state`: state values of a node at a version
- `_render`: ABIs from bytecode, and executions in the JSON form of a node
- `_ledger`: the versions of a fork, functions that the ledger itself calls, and answers to the requests of a client
- `_fork`: `Fork`, and that of an embedded node
- `_replay`, `_sweep`: committed transactions in BCS, `Replay` and `replay`; simulations at many versions
- `_recent`: the last transactions of functions
- `_package`, `_schedule`: what a fork publishes and sets
"""
