"""Following a configuration, so that an edit is in force at once and a broken one changes nothing."""

from fairpool_gateway.configwatch.file import follow, read
from fairpool_gateway.configwatch.secret import SecretFollower

__all__ = ["SecretFollower", "follow", "read"]
