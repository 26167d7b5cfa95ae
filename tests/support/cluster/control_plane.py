"""A real control plane, etcd and API server, that tests may kill, freeze and restart; controllers when asked for.

It listens on loopback only, unless it is given another address, with TLS and RBAC as in production, and keeps its data
in a directory of the tests. Its ports stay the same over restarts, so clients find it again. In a test use the
coroutines: they wait in another thread, while servers are started in the main one, as they must be (see `Server`).
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import ssl
from pathlib import Path
from typing import Any, Final

import httpx
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.cluster.access import Access
from support.cluster.ports import Port
from support.cluster.process import Server
from support.cluster.programs import Programs

ISSUER: Final = "https://kubernetes.default.svc"
"""Who signs ServiceAccounts' tokens, which is also whom they are for."""

LOOPBACK: Final = "127.0.0.1"

_SERVICES: Final = "10.96.0.0/16"
_OWN_SERVICE: Final = "10.96.0.1"


class ControllersMissing(Exception):
    """A test needs the controllers, and the programs in use have none."""


class ControlPlane:
    """`start()`, then `access` is the administrator's; `close()` ends everything.

    Where pods run they reach it by the Service `kubernetes`, which takes another address than loopback.
    """

    def __init__(self, programs: Programs, directory: Path, address: str = LOOPBACK) -> None:
        self.directory = directory
        self._address = address
        self._authority = trustme.CA()
        self._ports = (Port(), Port(), Port())
        api, client, peer = (port.number for port in self._ports)
        self._etcd_url = f"http://127.0.0.1:{client}"
        self.access = Access(f"https://{address}:{api}", self._authority.cert_pem.bytes(), secrets.token_urlsafe(24))
        self.programs = programs
        self.etcd = Server("etcd", (*programs.etcd, *self._etcd_flags(peer)), directory)
        self.apiserver = Server("kube-apiserver", (*programs.apiserver, *self._apiserver_flags(api)), directory)
        self.controllers: Server | None = None

    def start(self) -> None:
        """Start what is not running and wait until it is ready."""
        self.launch()
        self.wait()

    @property
    def running(self) -> bool:
        """Whether its servers run."""
        return self.etcd.running and self.apiserver.running

    def launch(self) -> None:
        """Start what is not running."""
        for server in (self.etcd, self.apiserver):
            if not server.running:
                server.start()

    def wait(self) -> None:
        """Wait until the API server says that it is ready.

        Raises:
            ServerFailed: it ended, or took too long.
        """
        with httpx.Client(verify=self.access.trust(), headers=self._headers()) as client:
            self.etcd.until(lambda: self._answers(client, f"{self._etcd_url}/health"))
            self.apiserver.until(lambda: self._answers(client, f"{self.access.url}/readyz"))

    async def restart_apiserver(self) -> None:
        """Kill the API server and start it again; watches and requests break, objects stay."""
        self.apiserver.kill()
        await self.resume()

    async def restart_etcd(self) -> None:
        """Kill etcd and start it again on its data; the API server rides it out."""
        self.etcd.kill()
        await self.resume()

    async def resume(self) -> None:
        """Have everything run again that a test has killed, and be ready."""
        self.launch()
        await asyncio.to_thread(self.wait)

    async def compact(self) -> None:
        """Let etcd forget all but the present, and the API server with it, which restarts.

        Whoever watched before and asks to go on from where it was is answered 410 if anything of its kind has changed
        meanwhile: the API server's own memory of recent events would answer it otherwise.
        """
        async with httpx.AsyncClient(base_url=self._etcd_url) as etcd:
            now = await etcd.post("/v3/kv/range", json={"key": "AA==", "limit": 1})
            revision = now.raise_for_status().json()["header"]["revision"]
            done = await etcd.post("/v3/kv/compaction", json={"revision": revision, "physical": True})
            done.raise_for_status()
        await self.restart_apiserver()

    def start_controllers(self) -> None:
        """Start the controller-manager, if it does not run, and wait until it works.

        Raises:
            ControllersMissing: there is none.
            ServerFailed: it ended, or took too long.
        """
        if self.controllers is not None and self.controllers.running:
            return
        if self.programs.controller_manager is None:
            raise ControllersMissing(
                "this test needs kube-controller-manager, which is not among the programs of KUBEBUILDER_ASSETS: "
                "put it there, or unset KUBEBUILDER_ASSETS and TEST_ASSET_* to have the project build its own"
            )
        command = (*self.programs.controller_manager, *self._controller_flags())
        self.controllers = Server("kube-controller-manager", command, self.directory)
        self.controllers.start()
        with httpx.Client(verify=self.access.trust(), headers=self._headers()) as client:
            made = f"{self.access.url}/api/v1/namespaces/default/serviceaccounts/default"
            self.controllers.until(lambda: self._answers(client, made))

    def stop_controllers(self) -> None:
        """End the controller-manager, if it runs."""
        if self.controllers is not None:
            self.controllers.kill()

    def stop(self) -> None:
        """End every server; `start` has etcd and the API server run again, with all objects."""
        self.stop_controllers()
        self.apiserver.kill()
        self.etcd.kill()

    def close(self) -> None:
        """End everything, give the ports back, and keep nothing but the logs."""
        self.stop()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        for port in self._ports:
            port.close()

    def serving(self) -> ssl.SSLContext:
        """What a proxy needs to be taken for the API server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        return context

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.access.token}"}

    def _answers(self, client: httpx.Client, url: str) -> bool:
        try:
            return client.get(url).status_code == 200
        except httpx.TransportError:
            return False

    def _etcd_flags(self, peer: int) -> list[str]:
        peer_url = f"http://127.0.0.1:{peer}"
        return _flags(
            {
                "name": "tests",
                "data-dir": self.directory / "etcd",
                "unsafe-no-fsync": "true",
                "socket-reuse-port": "true",
                "listen-client-urls": self._etcd_url,
                "advertise-client-urls": self._etcd_url,
                "listen-peer-urls": peer_url,
                "initial-advertise-peer-urls": peer_url,
                "initial-cluster": f"tests={peer_url}",
                "log-level": "warn",
            }
        )

    def _apiserver_flags(self, port: int) -> list[str]:
        names = (self._address, "localhost", "kubernetes.default.svc", _OWN_SERVICE)
        certificate = self._write("server.crt", b"")
        key = self._write("server.key", b"")
        leaf = self._authority.issue_cert(*names)
        leaf.private_key_and_cert_chain_pem.write_to_path(str(certificate))
        leaf.private_key_pem.write_to_path(str(key))
        signing = self._write("accounts.key", _private_key())
        users = self._write("users.csv", f"{self.access.token},admin,admin,system:masters\n".encode())
        return _flags(
            {
                "etcd-servers": self._etcd_url,
                "bind-address": self._address,
                "advertise-address": self._address,
                "endpoint-reconciler-type": "none" if self._address == LOOPBACK else "lease",
                "secure-port": port,
                "permit-port-sharing": "true",
                "cert-dir": self.directory,
                "tls-cert-file": certificate,
                "tls-private-key-file": key,
                "token-auth-file": users,
                "authorization-mode": "RBAC",
                "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",  # as OpenShift has it
                "service-account-issuer": ISSUER,
                "service-account-key-file": signing,
                "service-account-signing-key-file": signing,
                "service-cluster-ip-range": _SERVICES,
                "kubelet-preferred-address-types": "InternalIP",
                "allow-privileged": "true",
            }
        )

    def _controller_flags(self) -> list[str]:
        return _flags(
            {
                "kubeconfig": self.access.write(self.directory / "admin.kubeconfig"),
                "service-account-private-key-file": self.directory / "accounts.key",
                "root-ca-file": self._write("ca.crt", self.access.authority),
                "use-service-account-credentials": "true",
                "leader-elect": "false",
                "secure-port": 0,
            }
        )

    def _write(self, name: str, content: bytes) -> Path:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path


def _flags(values: dict[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def _private_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
