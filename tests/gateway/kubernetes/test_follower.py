"""The pods that are followed are those of one selector: the last one that was asked for, until there is none."""

import asyncio

import pytest
from support.fake_time import on_fake_time
from support.pods import pod

from fairpool_gateway.config import SelectorSettings
from fairpool_gateway.discovery import PodFollower

HOUR = 3600.0


class Pods:
    """The API server's pods, by the label that chooses them, and what was told of them: their names."""

    def __init__(self):
        self.there = {"old": ["old-0"], "new": ["new-0"]}
        self.told = []
        self.follower = PodFollower(lambda resource: Chosen(self.there, resource.query["labelSelector"]), "inference")

    async def follow(self, app):
        """Follow those, or none, for an hour."""
        selector = None if app is None else SelectorSettings.model_validate({"matchLabels": {"app": app}})
        self.follower.follow(selector, lambda pods: self.told.append({each.metadata.name for each in pods}))
        await asyncio.sleep(HOUR)

    async def grow(self):
        """There is one more of each; an hour passes."""
        for app, names in self.there.items():
            names.append(f"{app}-{len(names)}")
        await asyncio.sleep(HOUR)


class Chosen:
    """Those that one selector chooses: listed as they are, and watched in silence."""

    def __init__(self, there, selector):
        (self._names,) = (names for app, names in there.items() if app in selector)

    async def list(self):
        return [pod(name) for name in self._names], "1"

    async def watch(self, version, seconds):
        yield None
        await asyncio.sleep(seconds)


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("new", [{"old-0"}, {"new-0"}, {"new-0", "new-1"}]),
        ("old", [{"old-0"}, {"old-0", "old-1"}]),
        (None, [{"old-0"}]),
    ],
    ids=["another", "the same", "none"],
)
def test_once_a_selector_is_asked_for_no_other_ones_pods_are_told_of(then, told):
    async def main():
        pods = Pods()
        await pods.follow("old")
        await pods.follow(then)
        await pods.grow()
        await pods.follower.aclose()
        await pods.grow()
        return pods.told

    assert on_fake_time(main()) == told
