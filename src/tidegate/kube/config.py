"""Find the cluster that is meant, as kubectl does.

A path given by flag is read alone. Otherwise the files of KUBECONFIG are merged, otherwise
~/.kube/config is read, otherwise a pod's own service account is used. The first file to name a
cluster, user or context has all of it; later ones are not mixed in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidegate.documents import read
from tidegate.errors import ConfigError, DocumentError, Place, foreign
from tidegate.files import read_whole
from tidegate.kube.access.clusters import environment_proxy, read_server
from tidegate.kube.access.context import Anonymous, KubeTarget, Login, TokenFile
from tidegate.kube.access.stanza import ConfigFile, Stanza
from tidegate.kube.access.users import read_identity, read_login

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER = "in-cluster"
DEFAULT_NAMESPACE = "default"
SHOWN_NAMES = 10


def load_target(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT,
) -> KubeTarget:
    """The API server of a context, by default the current one, and all it takes to call it."""
    files = tuple(_read_files(kubeconfig, environ))
    wanted = context or _current_context(files)
    if not wanted:
        if kubeconfig is None and _is_pod(environ, service_account):
            return _load_pod(environ, service_account)
        raise _no_context(files, environ)
    found = _find(files, "context", wanted)
    if found is None:
        raise _unknown_context(files, wanted)
    return _resolve(wanted, found, files, environ)


def context_names(kubeconfig: str | None, environ: Mapping[str, str]) -> list[str]:
    """All contexts of a kubeconfig, sorted."""
    files = _read_files(kubeconfig, environ)
    return sorted({name for file in files for name in _stanzas(file, "context")})


def _resolve(
    name: str, context: Stanza, files: tuple[ConfigFile, ...], environ: Mapping[str, str]
) -> KubeTarget:
    cluster = _named_by(context, "cluster", files)
    if cluster is None:
        problem = f"{context.title} names no cluster"
        hint = "add `cluster: <name>` to it"
        raise ConfigError("config.reference", problem, where=context.place(), hint=hint)
    server = read_server(cluster, environ)
    user = _named_by(context, "user", files)
    login: Login = Anonymous()
    certificate = None
    if user is not None and server.is_secure:
        login, certificate = read_login(user, cluster=cluster, server=server, environ=environ)
    return KubeTarget(
        name=name,
        server=server.url,
        namespace=context.text("namespace") or DEFAULT_NAMESPACE,
        user=context.text("user"),
        login=login,
        certificate=certificate,
        identity=read_identity(user) if user else None,
        ca=server.ca,
        ca_place=server.ca_place,
        insecure=server.insecure,
        proxy=server.proxy,
        tls_server_name=server.tls_server_name,
        place=context.place(),
    )


def _read_files(kubeconfig: str | None, environ: Mapping[str, str]) -> Iterator[ConfigFile]:
    if kubeconfig is not None:
        yield _read(Path(kubeconfig))
        return
    for path in _usual_paths(environ):
        if path.exists():
            yield _read(path)


def _usual_paths(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files of KUBECONFIG, each once; or the one at home."""
    if listed := environ.get("KUBECONFIG"):
        return tuple(Path(entry) for entry in dict.fromkeys(listed.split(os.pathsep)) if entry)
    home = environ.get("HOME")
    return (Path(home, ".kube", "config"),) if home else ()


def _read(path: Path) -> ConfigFile:
    try:
        text = read_whole(path)
    except OSError as error:
        problem = f"kubeconfig `{path}` cannot be read: {error.strerror}"
        hint = "check the path and who may read the file"
        raise ConfigError("config.file", problem, where=Place(str(path)), hint=hint) from error
    try:
        documents = read(text, str(path))
    except DocumentError as error:
        hint = error.hint or "`kubectl config view` reads the same file"
        raise ConfigError("config.yaml", error.problem, where=error.where, hint=hint) from error
    file = ConfigFile(path, text, documents[0] if documents else None)
    _check_kind(file)
    return file


def _check_kind(file: ConfigFile) -> None:
    body = file.document.body if file.document else {}
    kind, version = body.get("kind") or "Config", body.get("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        problem = f"this is `{foreign(f'{version} {kind}')}`, not a kubeconfig"
        hint = "a kubeconfig says `apiVersion: v1` and `kind: Config`"
        raise ConfigError("config.kind", problem, where=file.place("kind"), hint=hint)


def _current_context(files: tuple[ConfigFile, ...]) -> str:
    named = (_top(file).text("current-context") for file in files)
    return next(filter(None, named), "")


def _top(file: ConfigFile) -> Stanza:
    return Stanza("the kubeconfig", file, (), file.document.body if file.document else {})


def _find(files: tuple[ConfigFile, ...], kind: str, name: str) -> Stanza | None:
    found = [stanza for file in files if (stanza := _stanzas(file, kind).get(name))]
    return found[0] if found else None


def _stanzas(file: ConfigFile, kind: str) -> dict[str, Stanza]:
    """All entries of a kind in one file, by name."""
    stanzas: dict[str, Stanza] = {}
    for entry in _top(file).stanzas(f"{kind}s"):
        name = entry.text("name")
        title = f"{kind} `{foreign(name)}`"
        if name in stanzas:
            problem = f"{title} is there twice"
            hint = "remove one of the two; kubectl takes no such file either"
            raise ConfigError("config.duplicate", problem, where=entry.place("name"), hint=hint)
        inner = entry.stanza(kind)
        stanzas[name] = Stanza(title, file, inner.path, inner.body)
    return stanzas


def _named_by(context: Stanza, kind: str, files: tuple[ConfigFile, ...]) -> Stanza | None:
    name = context.text(kind)
    if not name:
        return None
    found = _find(files, kind, name)
    if found is None:
        problem = f"{context.title} names {kind} `{foreign(name)}`, which is not there"
        hint = _choices(files, kind)
        raise ConfigError("config.reference", problem, where=context.place(kind), hint=hint)
    return found


def _unknown_context(files: tuple[ConfigFile, ...], name: str) -> ConfigError:
    problem = f"there is no context `{foreign(name)}`"
    where = None
    for file in files[:1]:
        has_current = _top(file).has("current-context")
        where = file.place("current-context" if has_current else "contexts")
    return ConfigError("config.context", problem, where=where, hint=_choices(files, "context"))


def _no_context(files: tuple[ConfigFile, ...], environ: Mapping[str, str]) -> ConfigError:
    if not files:
        looked = (
            ", ".join(f"`{path}`" for path in _usual_paths(environ)) or "HOME, which is not set"
        )
        hint = "give one with --kubeconfig, or set KUBECONFIG"
        return ConfigError("config.none", f"there is no kubeconfig; looked for {looked}", hint=hint)
    hint = f"choose one with --context; {_choices(files, 'context')}"
    where = files[0].place("current-context")
    return ConfigError("config.context", "no context is chosen", where=where, hint=hint)


def _choices(files: tuple[ConfigFile, ...], kind: str) -> str:
    names = sorted({name for file in files for name in _stanzas(file, kind)})
    shown = ", ".join(f"`{foreign(name)}`" for name in names[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{kind}s there are: {shown}{more}" if names else f"there is no {kind} at all"


def _is_pod(environ: Mapping[str, str], folder: Path) -> bool:
    variables = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    return all(environ.get(name) for name in variables) and (folder / "token").is_file()


def _load_pod(environ: Mapping[str, str], folder: Path) -> KubeTarget:
    """Whom a pod is by itself: its service account, in its own namespace."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    ca, namespace = folder / "ca.crt", folder / "namespace"
    place = Place(str(folder))
    told = namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else ""
    return KubeTarget(
        name=IN_CLUSTER,
        server=server,
        namespace=environ.get("POD_NAMESPACE") or told or DEFAULT_NAMESPACE,
        user=IN_CLUSTER,
        login=TokenFile(folder / "token", Place(str(folder / "token"))),
        ca=ca.read_bytes() if ca.is_file() else None,
        ca_place=Place(str(ca)),
        proxy=environment_proxy(server, environ),
        place=place,
    )
