"""The API server decodes YAML as we do."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest

from plane import ControlPlane
from plane.client import Client, wait_until
from tests.support.recorded_documents import (
    REFUSED,
    Case,
    all_cases,
    answer_of,
    numbered,
    our_answer,
)
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue

pytestmark = pytest.mark.kube

GROUP = "test.tidegate.dev"
PROBES = f"/apis/{GROUP}/v1/probes"
DEFINITION: dict[str, Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"probes.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": "Probe",
            "listKind": "ProbeList",
            "plural": "probes",
            "singular": "probe",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


class Oracle:
    """Sends YAML to the server for a dry run, and gives back what it made of it."""

    def __init__(self, plane: ControlPlane) -> None:
        tls = ssl.create_default_context(cafile=str(plane.ca))
        self._connection = http.client.HTTPSConnection(urlsplit(plane.server).netloc, context=tls)
        self._headers = {
            "Authorization": f"Bearer {plane.token('admin')}",
            "Content-Type": "application/yaml",
            "Accept": "application/json",
        }

    def ask(self, source: str) -> str:
        self._connection.request(
            "POST", f"{PROBES}?dryRun=All", source.encode(), headers=self._headers
        )
        reply = self._connection.getresponse()
        text = reply.read()
        if reply.status == HTTPStatus.BAD_REQUEST:
            return REFUSED
        assert reply.status == HTTPStatus.CREATED, text
        return answer_of(text)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def oracle(plane: ControlPlane) -> Iterator[Oracle]:
    client = Client(plane.server, ca=plane.ca, token=SecretValue(plane.token("admin")))
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    assert wait_until(lambda: client.answers(PROBES), seconds=30)
    oracle = Oracle(plane)
    yield oracle
    oracle.close()


def is_one_document(case: Case) -> bool:
    """kubectl cuts files into documents; the server is sent one, and reads no further."""
    return "\n---" not in case.text


def test_the_server_decodes_every_recorded_yaml_as_we_do(oracle: Oracle) -> None:
    sources = numbered([case for case in all_cases() if is_one_document(case)])

    answers = {source: oracle.ask(source) for source in sources}

    assert answers == {source: our_answer(source) for source in sources}
