"""How one object is written, whatever is in its way."""

from __future__ import annotations

import pytest
from support.compiling import LLAMA, NOW

from fairpool_operator.compile import Apply
from fairpool_operator.errors import Conflict
from fairpool_operator.writing import Writer


class TestWhatAPatchLeft:
    """A Service with a port that was once set by a patch, in versions that a controller keeps replacing."""

    def service(self, version):
        fields = {"f:spec": {"f:ports": {'k:{"port":80}': {}, 'k:{"port":443}': {}}}}
        record = [{"manager": "fairpool-operator", "operation": "Update", "fieldsV1": fields}]
        metadata = {"name": "llama-fairpool", "namespace": "inference", "uid": "u", "resourceVersion": str(version)}
        spec = {"ports": [{"port": 80}, {"port": 443}]}
        return {"kind": "Service", "metadata": {**metadata, "managedFields": record}, "spec": spec}

    @pytest.mark.parametrize("conflicts", [0, 1, 3])
    async def test_is_taken_out_of_the_newest_version(self, conflicts):
        taken_out, service = [], self.service

        class Cluster:
            version = 0

            async def apply(self, kind, wanted, *, status=False, force=True):
                self.version += 1
                return service(self.version)

            async def take_out(self, kind, there, pointers, *, status=False):
                if self.version <= conflicts:
                    raise Conflict("PATCH: 409")
                taken_out.append((there["metadata"]["resourceVersion"], *pointers))
                return there

        learnt = []
        writer = Writer(Cluster(), lambda kind, found: learnt.append(kind), identity="tests", now=lambda: NOW)
        wanted = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "llama-fairpool", "namespace": "inference"},
            "spec": {"ports": [{"port": 443}]},
        }
        await writer.write(Apply(wanted, "u", ("spec.ports",)), LLAMA)
        assert taken_out == [(str(conflicts + 1), ("spec", "ports", 0))]
        assert learnt == ["Service"]
