"""What is known of the cluster, so that one pool's view is put together without asking anybody."""

from fairpool_operator.store.store import Store, Touched

__all__ = ["Store", "Touched"]
