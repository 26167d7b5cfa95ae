"""The ASGI application: the hot path, the routes beside it, the admin port, and the process that serves them."""
