"""TLS and tokens, by the clients of Triton for both protocols."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import served
from oprack.cli.main import main
from oprack.errors import InvalidArgumentError
from oprack_serve.access.tls import check_tls
from oprack_serve.access.tokens import Tokens
from oprack_serve.calls import HttpHead
from oprack_serve.edge.direct import Direct
from oprack_serve.errors import RequestError

http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient's gRPC client can't be imported")
OPENSSL = shutil.which("openssl")
TOKEN = "a-token-that-nobody-guesses"
X = np.array([[1, 2]], np.float32)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    if OPENSSL is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "cert.pem", folder / "key.pem"
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    command = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *names)
    subprocess.run([OPENSSL, *command, "-out", made[0], "-keyout", made[1]], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def running(certificate, tmp_path_factory) -> Iterator[served.Served]:
    folder = tmp_path_factory.mktemp("models")
    served.save(folder / "scaled", served.scaled(10.0))
    (folder / "tokens").write_text(f"another-token-of-{'x' * 20}\n\n{TOKEN}\n")
    access = (
        "--tls-cert",
        str(certificate[0]),
        "--tls-key",
        str(certificate[1]),
        "--token-file",
        str(folder / "tokens"),
    )
    ports = ("--grpc-port", "0", "--health-port", "0")
    running = served.Served("--models", str(folder), *ports, *access, wait=False)
    running.event("model ready")
    running.folder = folder
    running.grpc = running.event("listening", after=1)["url"]
    yield running
    assert running.stop() == 0


def test_tls_and_tokens_over_http(running, certificate):
    assert running.url.startswith("https://")
    options = {"ssl": True, "ssl_options": {"ca_certs": str(certificate[0])}}
    with http.InferenceServerClient(running.url.removeprefix("https://"), **options) as client:
        assert client.is_server_live() and client.is_server_ready()
        given = http.InferInput("x", [1, 2], "FP32").set_data_from_numpy(X)
        for headers in (None, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}):
            for call in (client.get_server_metadata, client.get_inference_statistics):
                with pytest.raises(http.InferenceServerException, match="send the header Authorization: Bearer TOKEN"):
                    call(headers=headers)
            with pytest.raises(http.InferenceServerException, match="send the header Authorization: Bearer TOKEN"):
                client.infer("scaled", [given], headers=headers)
        answer = client.infer("scaled", [given], headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.as_numpy(answer.get_response()["outputs"][0]["name"]).tolist() == [[10, 20]]
    with socket.create_connection((running.host.removeprefix("https://"), running.port), 10) as plain:
        plain.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP")


def test_tls_and_tokens_at_the_port_for_probes(running, certificate):
    """Probes bring no token, metrics need one, and neither is said without TLS."""
    url = running.event("listening")["health_url"]
    assert url.startswith("https://")
    trusted = ssl.create_default_context(cafile=str(certificate[0]))

    def get(path: str, **headers: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), context=trusted) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    assert get("/v2/health/live")[0] == get("/v2/health/ready")[0] == 200
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}):
        status, text = get("/metrics", **headers)
        assert status == 401 and "send the header Authorization: Bearer TOKEN" in text
    status, text = get("/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200 and "oprack_requests_total" in text
    assert get("/v2/models/scaled", Authorization=f"Bearer {TOKEN}")[0] == 404  # of the other port alone
    host, _, port = url.removeprefix("https://").rpartition(":")
    with socket.create_connection((host, int(port)), 10) as plain:
        plain.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP")


def test_tls_and_tokens_over_grpc(running, certificate):
    assert running.grpc.startswith("grpcs://")
    address = running.grpc.removeprefix("grpcs://")
    with triton.InferenceServerClient(address, ssl=True, root_certificates=str(certificate[0])) as client:
        assert client.is_server_live() and client.is_server_ready()
        given = triton.InferInput("x", [1, 2], "FP32").set_data_from_numpy(X)
        for headers in (None, {"authorization": "Bearer no"}):
            with pytest.raises(triton.InferenceServerException, match="UNAUTHENTICATED"):
                client.get_model_metadata("scaled", headers=headers)
            with pytest.raises(triton.InferenceServerException, match="UNAUTHENTICATED"):
                client.infer("scaled", [given], headers=headers)
        answer = client.infer("scaled", [given], headers={"authorization": f"Bearer {TOKEN}"})
        assert answer.as_numpy(answer.get_response().outputs[0].name).tolist() == [[10, 20]]


def test_tokens_are_read_again_when_their_file_changes(tmp_path):
    path, events = tmp_path / "tokens", []
    path.write_text(f"{TOKEN}\n")
    tokens = Tokens(path, lambda event, **facts: events.append((event, facts)))
    tokens.check(f"Bearer {TOKEN}")
    tokens.check(f"bearer  {TOKEN} ")
    direct, request = Direct(None, tokens, 1.0), b"POST / HTTP/1.1\r\n\r\nab"
    direct.learn(request, HttpHead("m", None, [(b"authorization", f"Bearer {TOKEN}".encode())]), b"ab")
    assert bytes(direct.known(request)[1]) == b"ab"
    path.write_text(f"{TOKEN[::-1]}\n")
    tokens._look_at = 0.0
    assert direct.known(request) is None  # a head that is known lets nobody in
    tokens.check(f"Bearer {TOKEN[::-1]}")
    with pytest.raises(RequestError, match="an unknown token"):
        tokens.check(f"Bearer {TOKEN}")
    path.write_text("\n")  # a file that is being written takes nobody out
    for _ in range(2):
        tokens._look_at = 0.0
        tokens.check(f"Bearer {TOKEN[::-1]}")
    assert [event for event, _ in events] == ["tokens can't be read"]


@pytest.mark.parametrize(("text", "match"), [("", "a token of 16 bytes or more"), ("short\n", "a token of 16 bytes")])
def test_a_file_without_tokens_is_refused(tmp_path, text, match):
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(InvalidArgumentError, match=match):
        Tokens(tmp_path / "tokens", print)


def test_files_that_can_not_be_used_are_named_before_anything_starts(tmp_path, certificate, capsys):
    served.save(tmp_path / "scaled", served.scaled(1.0))
    model = ["serve", str(tmp_path / "scaled"), "--port", "0"]
    (tmp_path / "none.pem").write_text("nothing")
    for options, text in (
        (["--tls-cert", str(certificate[0])], "TLS needs both --tls-cert FILE and --tls-key FILE"),
        (["--tls-cert", str(certificate[0]), "--tls-key", str(tmp_path / "none.pem")], "in PEM"),
        (["--tls-cert", str(tmp_path / "away.pem"), "--tls-key", str(certificate[1])], "No such file"),
        (["--token-file", str(tmp_path / "away")], "--token-file"),
    ):
        assert main([*model, *options])
        assert text in capsys.readouterr().err
    assert not check_tls(None, None)


def test_a_key_with_a_password_is_not_asked_for(tmp_path, certificate):
    locked = tmp_path / "locked.pem"
    command = ("ec", "-aes256", "-passout", "pass:secret", "-in", certificate[1], "-out", locked)
    subprocess.run([OPENSSL, *command], check=True, capture_output=True)
    with pytest.raises(InvalidArgumentError, match="the key has a password"):
        check_tls(certificate[0], locked)
