"""What no body may lack and none may ask for, however it is written."""

from __future__ import annotations

from fairpool_gateway.cost.api import Api
from fairpool_gateway.errors import InvalidRequest


def refuse_overtaking(*, priority: bool, background: bool) -> None:
    """Refuse what engines would let pass before others, in a pool that does not allow it."""
    if priority:
        raise InvalidRequest("This pool orders requests itself: leave out `priority`.", param="priority")
    if background:
        raise InvalidRequest("This pool runs nothing in the background: leave out `background`.", param="background")


def without_model(api: Api) -> str:
    """What stands for the model of a body that names none; only what nothing is known of may."""
    if api is not Api.EXTRA:
        raise InvalidRequest("The body must name a `model`.", param="model")
    return ""
