"""The HTTP node: functions that turn a request into a response, and the server that calls them."""
