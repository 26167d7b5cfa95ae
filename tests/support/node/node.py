"""One node with everything on it: a control plane, and the programs that make its pods run and its Services lead there.

`start()` returns when the node is ready and has its GPUs. It takes a machine of its own (`support.node.alone`): the
network is one bridge, whose address is the node's and the API server's, so that pods reach both, and so that a process
of the tests reaches every pod and every Service. There is no way out of it, no DNS and no registry: the images are
those that were imported, and addresses are written as numbers.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
from support.cluster.access import Access
from support.cluster.client import Document
from support.cluster.control_plane import ControlPlane
from support.cluster.process import Server
from support.cluster.programs import Programs
from support.node import groups
from support.node.images import SANDBOX
from support.node.machine import network_plugins

NAME: Final = "node"
GPUS: Final = 64

ADDRESS: Final = "10.244.0.1"
_PODS: Final = "10.244.0.0/24"
_BRIDGE: Final = "pods"
_SOCKET: Final = "/run/containerd/containerd.sock"

_CONTAINERD: Final = """
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{directory}"
"""

_NETWORK: Final = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": _BRIDGE,
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": _PODS}]], "routes": [{"dst": "0.0.0.0/0"}]},
        }
    ],
}

_KUBELET: Final = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "containerRuntimeEndpoint": f"unix://{_SOCKET}",
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "failCgroupV1": False,
    "failSwapOn": False,
    "imageGCHighThresholdPercent": 100,
    "localStorageCapacityIsolation": False,
    "makeIPTablesUtilChains": False,
    "resolvConf": "",
    "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
}

_PROXY: Final = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "mode": "nftables",
    "hostnameOverride": NAME,
    "clusterCIDR": _PODS,
    "conntrack": {"maxPerCore": 0},
}


class Node:
    """The cluster: `control_plane` with its controllers, and this machine as the node `NAME`."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self.control_plane = ControlPlane(Programs.of(binary), directory, ADDRESS)
        self._binary = binary
        self._directory = directory
        self._servers: list[Server] = []

    @property
    def access(self) -> Access:
        """The administrator's."""
        return self.control_plane.access

    def start(self, archives: Iterable[Path]) -> None:
        """Start everything; returns when the node takes pods of these images, and pods that ask for GPUs.

        Raises:
            ServerFailed: something ended, or took too long.
        """
        groups.end()
        _make_bridge()
        self.control_plane.launch()
        self._start_containerd(archives)
        self.control_plane.wait()
        self.control_plane.start_controllers()
        kubeconfig = str(self.access.write(self._directory / "node.kubeconfig"))
        self._start("kube-scheduler", "--kubeconfig", kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1")
        proxy = {**_PROXY, "clientConnection": {"kubeconfig": kubeconfig}}
        self._start("kube-proxy", "--config", self._write("proxy.json", proxy))
        kubelet = ("--config", self._write("kubelet.json", _KUBELET), "--node-ip", ADDRESS)
        self._start("kubelet", "--kubeconfig", kubeconfig, "--hostname-override", NAME, *kubelet).until(self._ready)
        self._put_gpus()

    def close(self) -> None:
        """End everything, pods too."""
        for server in reversed(self._servers):
            server.kill()
        groups.end()
        self.control_plane.close()

    def process(self, pod: Document) -> int:
        """The process of a pod's container, as the tests see it, to be killed or stopped."""
        (container,) = pod["status"]["containerStatuses"]
        name = container["containerID"].rpartition("/")[2]
        lines = _run("ctr", "--namespace", "k8s.io", "tasks", "list").splitlines()
        (pid,) = (int(line.split()[1]) for line in lines if line.startswith(name))
        return pid

    def _start_containerd(self, archives: Iterable[Path]) -> None:
        network = self._directory / "network"
        network.mkdir()
        (network / "pods.conflist").write_text(json.dumps(_NETWORK))
        config = self._directory / "containerd.toml"
        config.write_text(_CONTAINERD.format(sandbox=SANDBOX, plugins=network_plugins(), directory=network))
        containerd = Server("containerd", ("containerd", "--config", str(config)), self._directory)
        self._servers.append(containerd)
        containerd.start()
        containerd.until(lambda: subprocess.run(["ctr", "version"], capture_output=True, check=False).returncode == 0)
        for archive in archives:
            _run("ctr", "--namespace", "k8s.io", "images", "import", str(archive))

    def _start(self, name: str, *arguments: str) -> Server:
        server = Server(name, (str(self._binary), name, *arguments), self._directory)
        self._servers.append(server)
        server.start()
        return server

    def _write(self, name: str, document: Mapping[str, Any]) -> str:
        path = self._directory / name
        path.write_text(json.dumps(document))
        return str(path)

    def _ready(self) -> bool:
        with self._client() as client:
            found = client.get(f"/api/v1/nodes/{NAME}")
            conditions = found.json()["status"].get("conditions", ()) if found.is_success else ()
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _put_gpus(self) -> None:
        """Say that the node has some, as a device plugin would."""
        change = {"status": {"capacity": {"nvidia.com/gpu": str(GPUS)}}}
        merge = {"content-type": "application/merge-patch+json"}
        with self._client() as client:
            client.patch(f"/api/v1/nodes/{NAME}/status", json=change, headers=merge).raise_for_status()

    def _client(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.access.token}"}
        return httpx.Client(base_url=self.access.url, verify=self.access.trust(), headers=headers, trust_env=False)


def _make_bridge() -> None:
    """The network: loopback, and the bridge that pods are put on, through which Services are looked for too."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", _BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{ADDRESS}/24", "dev", _BRIDGE)
    _run("ip", "link", "set", _BRIDGE, "up")
    _run("ip", "route", "add", "default", "dev", _BRIDGE)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _run(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
    return done.stdout
