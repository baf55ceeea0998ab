"""Kubeconfig loading, with kubectl's rules.

A path given by flag is read alone. Otherwise the files of KUBECONFIG are merged, otherwise
~/.kube/config is read, otherwise the service account of the pod is used. The first file that
names a cluster, user or context defines it completely; later files are not mixed in.

Like `ClientConfigLoadingRules` in `tools/clientcmd/loader.go` of k8s.io/client-go 0.36.4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidegate.documents import read_documents
from tidegate.errors import ConfigError, DocumentError, Location, sanitize
from tidegate.files import read_regular_file
from tidegate.kube.access.clusters import proxy_from_environment, read_server
from tidegate.kube.access.context import Anonymous, KubeTarget, Login, TokenFile
from tidegate.kube.access.entries import ConfigEntry, ConfigFile
from tidegate.kube.access.users import read_identity, read_login
from tidegate.model.display import join_quoted

SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER = "in-cluster"
DEFAULT_NAMESPACE = "default"
MAX_SHOWN_NAMES = 10


def load_target(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT_DIRECTORY,
) -> KubeTarget:
    """Return the API server of a context, by default the current one, with its credentials.

    Raises ConfigError if there is no such context, or if the kubeconfig is invalid.
    """
    files = tuple(_read_files(kubeconfig, environ))
    context_name = context or _current_context(files)
    if not context_name:
        if kubeconfig is None and _is_in_cluster(environ, service_account):
            return _load_in_cluster(environ, service_account)
        raise _missing_context(files, environ)
    entry = _find_entry(files, "context", context_name)
    if entry is None:
        raise _unknown_context(files, context_name)
    return _resolve_target(context_name, entry, files, environ)


def list_contexts(kubeconfig: str | None, environ: Mapping[str, str]) -> list[str]:
    """Return the names of all contexts of a kubeconfig, sorted."""
    files = _read_files(kubeconfig, environ)
    return sorted({name for file in files for name in _entries_by_name(file, "context")})


def _resolve_target(
    name: str, context: ConfigEntry, files: tuple[ConfigFile, ...], environ: Mapping[str, str]
) -> KubeTarget:
    cluster = _find_referenced_entry(context, "cluster", files)
    if cluster is None:
        problem = f"{context.title} has no cluster"
        hint = "add `cluster: <name>` to it"
        raise ConfigError("config.reference", problem, location=context.locate(), hint=hint)
    server = read_server(cluster, environ)
    user = _find_referenced_entry(context, "user", files)
    login: Login = Anonymous()
    certificate = None
    if user is not None and server.is_secure:
        login, certificate = read_login(user, cluster=cluster, server=server, environ=environ)
    return KubeTarget(
        name=name,
        server=server.url,
        namespace=context.get_text("namespace") or DEFAULT_NAMESPACE,
        user=context.get_text("user"),
        login=login,
        certificate=certificate,
        identity=read_identity(user) if user else None,
        ca=server.ca,
        ca_location=server.ca_location,
        insecure=server.insecure,
        proxy=server.proxy,
        tls_server_name=server.tls_server_name,
        location=context.locate(),
    )


def _read_files(kubeconfig: str | None, environ: Mapping[str, str]) -> Iterator[ConfigFile]:
    if kubeconfig is not None:
        yield _read_file(Path(kubeconfig))
        return
    for path in _default_paths(environ):
        if path.exists():
            yield _read_file(path)


def _default_paths(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files of KUBECONFIG, each once, or the file in the home directory."""
    if paths := environ.get("KUBECONFIG"):
        return tuple(Path(entry) for entry in dict.fromkeys(paths.split(os.pathsep)) if entry)
    home_directory = environ.get("HOME")
    return (Path(home_directory, ".kube", "config"),) if home_directory else ()


def _read_file(path: Path) -> ConfigFile:
    try:
        text = read_regular_file(path)
    except OSError as error:
        problem = f"cannot read kubeconfig `{path}`: {error.strerror}"
        hint = "check the path and the permissions of the file"
        raise ConfigError(
            "config.file", problem, location=Location(str(path)), hint=hint
        ) from error
    try:
        documents = read_documents(text, str(path))
    except DocumentError as error:
        hint = error.hint or "`kubectl config view` reads the same file"
        raise ConfigError(
            "config.yaml", error.problem, location=error.location, hint=hint
        ) from error
    file = ConfigFile(path, text, documents[0] if documents else None)
    _check_kind(file)
    return file


def _check_kind(file: ConfigFile) -> None:
    body = file.document.body if file.document else {}
    kind, version = body.get("kind") or "Config", body.get("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        problem = f"this is `{sanitize(f'{version} {kind}')}`, not a kubeconfig"
        hint = "a kubeconfig has `apiVersion: v1` and `kind: Config`"
        raise ConfigError("config.kind", problem, location=file.locate("kind"), hint=hint)


def _current_context(files: tuple[ConfigFile, ...]) -> str:
    names = (_root_entry(file).get_text("current-context") for file in files)
    return next(filter(None, names), "")


def _root_entry(file: ConfigFile) -> ConfigEntry:
    return ConfigEntry("the kubeconfig", file, (), file.document.body if file.document else {})


def _find_entry(files: tuple[ConfigFile, ...], kind: str, name: str) -> ConfigEntry | None:
    entries = [entry for file in files if (entry := _entries_by_name(file, kind).get(name))]
    return entries[0] if entries else None


def _entries_by_name(file: ConfigFile, kind: str) -> dict[str, ConfigEntry]:
    """Return all entries of a kind in one file, by name."""
    entries: dict[str, ConfigEntry] = {}
    for entry in _root_entry(file).get_entries(f"{kind}s"):
        name = entry.get_text("name")
        title = f"{kind} `{sanitize(name)}`"
        if name in entries:
            problem = f"{title} is defined twice"
            hint = "remove one of the two; kubectl rejects such a file, too"
            raise ConfigError("config.duplicate", problem, location=entry.locate("name"), hint=hint)
        inner = entry.get_entry(kind)
        entries[name] = ConfigEntry(title, file, inner.path, inner.body)
    return entries


def _find_referenced_entry(
    context: ConfigEntry, kind: str, files: tuple[ConfigFile, ...]
) -> ConfigEntry | None:
    name = context.get_text(kind)
    if not name:
        return None
    entry = _find_entry(files, kind, name)
    if entry is None:
        problem = f"{context.title} refers to {kind} `{sanitize(name)}`, which does not exist"
        hint = _describe_choices(files, kind)
        raise ConfigError("config.reference", problem, location=context.locate(kind), hint=hint)
    return entry


def _unknown_context(files: tuple[ConfigFile, ...], name: str) -> ConfigError:
    problem = f"context `{sanitize(name)}` not found"
    location = None
    for file in files[:1]:
        has_current = _root_entry(file).has("current-context")
        location = file.locate("current-context" if has_current else "contexts")
    hint = _describe_choices(files, "context")
    error = ConfigError("config.context", problem, location=location, hint=hint)
    error.missing_context = name
    return error


def _missing_context(files: tuple[ConfigFile, ...], environ: Mapping[str, str]) -> ConfigError:
    if not files:
        searched = (
            ", ".join(f"`{path}`" for path in _default_paths(environ)) or "HOME, which is not set"
        )
        hint = "use --kubeconfig, or set KUBECONFIG"
        return ConfigError("config.none", f"no kubeconfig found; searched {searched}", hint=hint)
    hint = f"use --context; {_describe_choices(files, 'context')}"
    location = files[0].locate("current-context")
    return ConfigError("config.context", "no context is set", location=location, hint=hint)


def _describe_choices(files: tuple[ConfigFile, ...], kind: str) -> str:
    names = sorted({name for file in files for name in _entries_by_name(file, kind)})
    return (
        f"known {kind}s: {join_quoted(names, MAX_SHOWN_NAMES)}"
        if names
        else f"no {kind} is defined"
    )


def _is_in_cluster(environ: Mapping[str, str], directory: Path) -> bool:
    variables = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    return all(environ.get(name) for name in variables) and (directory / "token").is_file()


def _load_in_cluster(environ: Mapping[str, str], directory: Path) -> KubeTarget:
    """Return the API server of the pod's own cluster, with the service account of the pod.

    Like `InClusterConfig` in `rest/config.go` of k8s.io/client-go 0.36.4.
    """
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    ca, namespace = directory / "ca.crt", directory / "namespace"
    location = Location(str(directory))
    mounted_namespace = namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else ""
    return KubeTarget(
        name=IN_CLUSTER,
        server=server,
        namespace=environ.get("POD_NAMESPACE") or mounted_namespace or DEFAULT_NAMESPACE,
        user=IN_CLUSTER,
        login=TokenFile(directory / "token", Location(str(directory / "token"))),
        ca=ca.read_bytes() if ca.is_file() else None,
        ca_location=Location(str(ca)),
        proxy=proxy_from_environment(server, environ),
        location=location,
    )
