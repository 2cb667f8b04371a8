"""The HTTP node: functions from a request to an answer, and the server that calls them."""
