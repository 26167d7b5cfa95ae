"""The Kubernetes API as a gateway needs it: a few objects followed, one status reported."""

from fairpool_gateway.cluster.mirror import Mirror
from fairpool_gateway.cluster.objects import Change, Metadata, Resource, Source, Thing

__all__ = ["Change", "Metadata", "Mirror", "Resource", "Source", "Thing"]
