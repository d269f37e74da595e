"""Recognise secret files by their paths: those that are one secret, and those that hold some."""

import re
from enum import Enum

from tracemill.privacy.core.secret_names import is_secret_name


class FileKind(Enum):
    """The kind of secrets in a file."""

    SECRET = "secret"
    """A secret and nothing else."""
    FIELDS = "fields"
    """Settings, with secrets among them."""
    LINES = "lines"
    """Lines of words, with secrets among them, such as `chap-secrets`."""


_PLACES = re.compile(
    r"(?:^|/)(?:var/)?run/secrets?/[^/]|^/(?:etc|mnt|vault|opt|app)/(?:[\w.-]+/)?secrets?/[^/]"
)
_SECRET_NAMES = re.compile(
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_\w+)?|\.vault[-_]token|\.vault[-_]pass(?:word)?(?:\.txt)?|master\.key"
    r"|credentials/\w+\.key|\.erlang\.cookie|huggingface/token|serviceaccount/token|hsm_secret|\.pgpass"
    r"|\.?htpasswd(?:\.\w+)?|mosquitto/(?:[\w.-]*pass\w*|pwfile)|pgbouncer/userlist\.txt|userlist\.txt|\.?passphrase(?:\.txt)?|\.env\.vault|\.?secret[-_]?key(?:\.txt)?|\.my-?token|nix-serve\.sec"
    r"|[\w.-]*(?:private|server|client|tls|ssl|signing|deploy|wg\d?|host)[\w.-]*\.key"
    r"|\.google_authenticator|[\w-]+\.(?:psk|pw)|(?:vnc|x11vnc|tigervnc)/passwd"
    r"|\.git-crypt[\w-]*\.key|age[\w-]*\.key|age/keys\.txt|privatekey|[\w-]+\.(?:password|passwd|secret)|(?:open)?vpn/(?:[\w-]+/)*(?:auth|pass|login|creds?|psk)[\w-]*(?:\.(?:txt|conf|up))?|ssh_host_\w+_key|\.?kube-?token"
    r"|[\w.-]*key-?file(?:\.(?:txt|b64|bin))?|authkey(?:\.\w{1,4})?|[\w-]+-auth-?key|(?:munge|luks|corosync|rndc|mongo\w*|replica\w*|cluster|gossip|encryption|decryption|backup|root|sops|cosign|minisign)[\w-]*\.key(?:\.b64)?)$"
)
_FIELD_NAMES = re.compile(
    r"(?:^|/)(?:[._]netrc|\.my\.cnf|\.git-credentials|\.pypirc|\.npmrc|\.yarnrc\.yml|\.s3cfg|\.boto|\.databrickscfg"
    r"|\.terraformrc|\.rclone\.conf|rclone\.conf|\.envrc|\.env(?:\.[\w.-]+)?|[\w-]+\.env|\.aws/credentials"
    r"|\.docker/config\.json|\.dockercfg|\.?kube/config|kubeconfig(?:\.ya?ml)?|gh/hosts\.yml|glab-cli/config\.yml"
    r"|\.cargo/credentials(?:\.toml)?|credentials\.tfrc\.json|application_default_credentials\.json"
    r"|doctl/config\.yaml|\.fly/config\.yml|netlify/config\.json|\.kaggle/kaggle\.json|kaggle\.json"
    r"|\.codex/auth\.json|auth\.json|\.claude/\.credentials\.json|\.gemini/oauth_creds\.json|\.snowsql/config"
    r"|client_secrets?[\w.-]*\.json|service[-_]account[\w.-]*\.json|credentials\.(?:json|ya?ml|ini|toml)"
    r"|secrets?\.(?:json|ya?ml|ini|toml|env|properties|auto\.tfvars)|terraform\.tfvars|[\w-]+\.auto\.tfvars"
    r"|terraform\.tfstate|etc/(?:g?shadow|master\.passwd|security/opasswd|ldap\.secret|msmtprc)|smbpasswd|\.(?:msmtprc|fetchmailrc|mbsyncrc|authinfo|ldaprc)|[\w-]+\.nmconnection|wpa_supplicant[\w-]*\.conf|rndc\.key|proc/(?:\d+|self|\$\w+)/environ|\.streamlit/secrets\.toml|local\.settings\.json"
    r"|\.sbt/\.?credentials|subversion/auth/[\w./-]+|cypress\.env\.json"
    r"|\.config/op/config|\.composer/auth\.json|\.gem/credentials|\.bundle/config|\.gradle/gradle\.properties|\.m2/settings\.xml|\.smbcredentials|\.cifs\w*|tac_?plus\.(?:conf|cfg)|\.(?:transifexrc|flyrc|offlineimaprc|muttrc|esmtprc|getmail/\w+|irssi/config|s3ql/authinfo2|lftprc)|ceph\.[\w.]+\.keyring|users\.acl|weechat/sec\.conf|turnserver\.conf|homeserver\.yaml)$"
)
_LINE_NAMES = re.compile(
    r"(?:^|/)(?:etc/ipsec\.secrets|(?:chap|pap)-secrets|davfs2?/secrets|dovecot/(?:users|[\w.-]*passwd[\w.-]*)|sasl_passwd|passwd\.client"
    r"|(?:[\w-]*vpn-?)?(?:auth|login|logins|creds?|passwords?)\.txt)$"
)
_SAMPLE = re.compile(
    r"(?i)\.(?:example|sample|template|dist|tmpl|tpl|pub|md|enc|gpg|age|sops|default|schema)\b|example|sample"
)
_PLAIN_SUFFIX = re.compile(r"\.(?:txt|key|token|secret|pass|password|pwd|creds?|b64|pem)$")
_IN_FOLDER = re.compile(r"(?:^|/)\.?(?:secrets?|credentials|passwords|tokens)/")
_CODE_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,9}$")
_PUBLIC = re.compile(
    r"(?i)(?:pub(?:lic)?|cert|ca|chain|crt)[\w-]*\.(?:pem|key|crt|txt)$|known_hosts|authorized_keys|_token_?s?\.txt$|tokens?\.txt$"
)


def find_secret_file_kind(path: str) -> FileKind | None:
    """Return the kind of a secret file by its path; None for other, sample and public files."""
    path = path.replace("\\", "/").strip("'\"")
    name = path.rpartition("/")[2]
    if not name or _SAMPLE.search(name) or _PUBLIC.search(name):
        return FileKind.SECRET if _PLACES.search(path) else None
    if _PLACES.search(path) or _SECRET_NAMES.search(path):
        return FileKind.SECRET
    if _LINE_NAMES.search(path):
        return FileKind.LINES
    if _FIELD_NAMES.search(path):
        return FileKind.FIELDS
    plain = _PLAIN_SUFFIX.search(name)
    if (plain or not _CODE_SUFFIX.search(name)) and (_IN_FOLDER.search(path) or _is_named_secret(name)):
        return FileKind.SECRET
    return None


def _is_named_secret(name: str) -> bool:
    """Tell whether a plain text file is a secret by its name: `db_password.txt`."""
    stem = _PLAIN_SUFFIX.sub("", name).lstrip(".")
    return (
        stem != name
        and ("_" in stem or "-" in stem or stem in ("password", "passphrase", "secret"))
        and is_secret_name(stem)
    )
