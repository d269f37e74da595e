# ruff: noqa: E501 (outputs)
"""Keys in the forms in which tools print them, values of consoles and cmdlets, and listings that hide their values."""

import random
import string

import pytest
from secret_sessions import output_trace

from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.core.set_passwords import is_chosen_key
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.privacy.secrets.powershell import judge_powershell
from tracemill.privacy.secrets.printed_secrets import find_printed_secrets

REDACTOR = Redactor(key=b"k")
DRAWN = random.Random(19)


def draw(alphabet: str, size: int) -> str:
    return "".join(DRAWN.choices(alphabet, k=size))


HEX = draw("0123456789abcdef", 64)
WORD = draw(string.ascii_letters + string.digits, 18) + "7aQ"
BASE64 = draw(string.ascii_letters + string.digits, 43) + "="
UUID = "-".join(draw("0123456789abcdef", size) for size in (8, 4, 4, 4, 12))
BYTES = " ".join(draw("0123456789abcdef", 2) for _ in range(16))


def shown(line: str, output: str) -> str:
    """Return the result of a command line as redaction leaves it."""
    return REDACTOR.redact_trace(output_trace("claude_code", line, output))[0].contexts[0].messages[2].content


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"root: 0 976740352 crypt aes-xts-plain64 {HEX} 0 8:2 32768", HEX),
        (f"\tauth-trunc hmac(sha256) 0x{HEX} 128", HEX),
        (f"salt=A8AE1213F8FF3B6B\nkey={HEX.upper()}\niv =00", HEX.upper()),
        (f"MK dump:\t{BYTES} \n\t\t{BYTES}\n", BYTES),
        (f"privateExponent:\n    {BYTES.replace(' ', ':')}:\n    {BYTES.replace(' ', ':')}\n", BYTES.replace(" ", ":")),
        (f"{BASE64}\t{BASE64[::-1][1:]}=\t51820\toff\n", BASE64),
        (f"node join 10.0.0.5:25000/{HEX[:32]}/{HEX[:12]}", HEX[:32]),
        ("Password:\n  " + "-".join(["482911"] * 8), "482911-482911-482911"),
        ("cbdefghi-jklnrtuv-cbdefghi-jklnrtuv-vutrnlkj-ihgfedbc-cbdefghi-vutrnlkj", "jklnrtuv-vutrnlkj"),
        ("New personal recovery key = 'KHCN-KTMC-YAYA-23QX-E997-86D4'", "KTMC-YAYA-23QX"),
        (f"Client ci certificate add token:\n{WORD}{WORD}\n", WORD),
        (f'$ export APP_SESSION="{BASE64}"', BASE64),
        (f'resource "random_password" "db" {{\n    length = 20\n    result = "{WORD}"\n}}', WORD),
        (f"secret_id             {UUID}\nsecret_id_accessor    0", UUID),
        (f'{{"role_id": "x", "secret_id": "{UUID}"}}', UUID),
        (f"  primary_key: {BASE64}\n  key_derivation_salt: {WORD}{WORD}\n", BASE64),
        (f"    ProxyPassword    REG_SZ    {WORD}\n", WORD),
        (f'<Pass encoding="base64">{WORD}</Pass>', WORD),
        (f'<string name="PreSharedKey">&quot;{WORD}&quot;</string>', WORD),
        (f"ENGINE = PostgreSQL('pg-1:5432', 'shop', 'orders', 'reader', '{WORD}')", WORD),
        (f'Settings {{ signing_key: Some("{UUID}"), port: 80 }}', UUID),
        (f"<auth-user-pass>\nops\n{WORD}\n</auth-user-pass>", WORD),
        (f'login = cleartext "{WORD}"', WORD),
        (f"\nName  ms-Mcs-AdmPwd\n----  -------------\nws-12 {WORD}\n", WORD),
        (f"\nProxyPassword\n-------------\n{WORD}\n", WORD),
    ],
)  # fmt: skip
def test_a_key_is_found_by_its_form(text: str, value: str) -> None:
    assert value not in REDACTOR.redact_text(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "root: 0 976740352 crypt aes-xts-plain64 :64:logon:cryptsetup:k 0 8:2 32768",
        f"Modulus:\n    00:{BYTES.replace(' ', ':')}:\n",
        f"docker ps\n{HEX} shop-api-1\n{HEX[::-1]} shop-db-1",
        f"NAME         DIGEST           STATUS\nS3_SECRET    {HEX[:16]} Deployed",
        f"NAME       | DIGEST\n-----------|------\nAPP_KEY    | {HEX}",
        f"password: ENC[AES256_GCM,data:{BASE64},iv:{BASE64},tag:{BASE64},type:str]",
        f"spring.datasource.password={{cipher}}{HEX}",
        f'{{"kty":"RSA","n":"{(WORD * 17)[:342]}","e":"AQAB"}}',
        f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC{(WORD * 26)[:520]} ops",
        "secret_id: prod/db/password",
        'result = "passed"',
    ],
)
def test_digests_ciphertexts_and_public_keys_stay(text: str) -> None:
    assert REDACTOR.redact_text(text)[0] == text


@pytest.mark.parametrize(
    "line",
    [
        "groovy -e 'println System.getenv(\"DEPLOY_TOKEN\")'",
        "scala -e 'println(sys.env(\"DB_PASSWORD\"))'",
        "ghc -e 'System.Environment.getEnv \"API_TOKEN\" >>= putStrLn'",
        "clojure -M -e '(println (System/getenv \"DB_PASSWORD\"))'",
        "Rscript -e 'cat(Sys.getenv(\"DB_PASSWORD\"))'",
        "tclsh <<< 'puts $env(DB_PASSWORD)'",
        "nu -c '$env.API_TOKEN'",
        "crystal eval 'puts ENV[\"DB_PASSWORD\"]'",
        "perl -MYAML -e 'print LoadFile(\"conf.yml\")->{db}{password}'",
        "jshell -s - <<< 'System.out.println(System.getenv(\"KEYSTORE_PASS\"))'",
        "elixir -e 'IO.puts(:crypto.strong_rand_bytes(32) |> Base.encode64())'",
        "go run ./cmd/gen-secret",
        "sudo cat /etc/mongo/keyfile",
        "cat ~/.config/ngrok/authtoken",
        "virsh secret-get-value 1",
    ],
)
def test_what_prints_one_secret(line: str) -> None:
    for value in (WORD, "qkzmvphtwy", "lagoon-prairie-590"):
        assert value not in shown(line, value)


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("flask shell <<< 'print(app.config[\"SECRET_KEY\"])'", "Python 3.13.1 on linux\n>>> {}\n>>> "),
        ("iex -S mix <<< 'System.get_env(\"SECRET_KEY_BASE\")'", 'Erlang/OTP 27\niex(1)> "{}"\niex(2)> '),
        ("echo 'ENV.fetch(\"API_TOKEN\")' | bin/rails console", 'Loading production environment\n=> "{}"'),
        ("rails c <<< 'puts Rails.application.secret_key_base'", "Loading production environment\n{}\n=> nil"),
        ("pwsh -c 'Get-AzRedisCacheKey -Name shop'", "\nPrimaryKey   : {}\n"),
        ("pwsh -c 'Get-AzStorageAccountKey -Name x'", "\nKeyName Value\n------- -----\nkey1    {}"),
        ("reg.exe query HKLM\\SOFTWARE\\Shop", "\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Shop\n    ApiToken    REG_SZ    {}"),
        ("jf config export shop", "{}"),
        ("java -jar jenkins-cli.jar -s http://ci groovy = < creds.groovy", "registry : ci / {}"),
        ("az webapp config appsettings list -n f -o table", "Name       Slot   Value\n---------  -----  -----\nSMTP_PASS  False  {}"),
        ("sops -d prod.yaml", "host: db-1\npassword: {}"),
    ],
)  # fmt: skip
def test_a_secret_beside_other_lines_goes_and_they_stay(line: str, output: str) -> None:
    value = f"{WORD}{WORD}"
    content = shown(line, output.format(value))
    assert value not in content
    kept = [each for each in output.split("\n") if "{}" not in each]
    assert [each for each in kept if each not in content] == []


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("vault token lookup -format=json | jq '{policies: .data.policies, ttl: .data.ttl}'", '{"policies": ["default"], "ttl": 2764790}'),
        ("vault token lookup -format=json | jq -r .data.display_name", "approle"),
        ("vault read transit/keys/shop", "Key     Value\n---     -----\ntype    aes256-gcm96"),
        ("vercel env ls", " name         value      environments        created\n AUTH_SECRET  Encrypted  Production, Preview  41d ago"),
        ("npm token list", "Publish token npm_aF… with id 4f9850 created 2026-05-04"),
        ("kubectl get deploy x -o yaml | yq .spec", "valueFrom:\n  secretKeyRef:\n    key: db-password-v2\n    name: shop-7d9c8b6f5"),
        ("docker secret inspect db", f'[{{"ID":"{HEX[:25]}","Spec":{{"Name":"db_password"}}}}]'),
        ("psql -c 'select id, token_prefix from api_tokens'", " id | token_prefix\n----+--------------\n  1 | shp_aF2k9"),
        ("psql -c 'select key, length(value) from secrets'", " key        | length\n------------+--------\n jwt_secret |     64"),
        ("flask shell <<< 'print(app.config[\"SECRET_KEY\"] is not None)'", ">>> True\n>>> "),
        ("bin/rails console <<< 'User.count'", "Loading production environment\n=> 4211"),
        ("pwsh -c 'Get-AzStorageAccountKey -Name x | Select-Object KeyName,CreationTime'", "\nKeyName CreationTime\n------- ------------\nkey1    04/11/2026 08:12:30"),
        ("pwsh -c 'Get-LocalUser | Select-Object Name,PasswordLastSet'", "\nName PasswordLastSet\n---- ---------------\nops  11/2/2026 8:12:30 AM"),
        ("pwsh -c 'Get-Credential -UserName svc -Message x | Format-List'", "\nUserName : svc\nPassword : System.Security.SecureString"),
        ("python manage.py showmigrations authtoken", "authtoken\n [X] 0002_auto_20160226_1747"),
        ("php artisan config:show session", "  session ....\n  driver ..... redis"),
    ],
)  # fmt: skip
def test_facts_about_secrets_stay(line: str, output: str) -> None:
    assert shown(line, output) == output


@pytest.mark.parametrize("name", ["api_key", "secretKey", "hmac_key", "client_secret", "token"])
def test_a_chosen_value_counts_under_the_name_of_a_key(name: str) -> None:
    for value in ("yj6wWKUmf", "harbor4125!", "lagoon-prairie-ember-590", "xyutpe554myfh", "r4tq9zk2m7wd"):
        assert secret_name_kind(name, value, True) == "SECRET"
        assert value not in REDACTOR.redact_text(f'Config {{ host: "db", {name}: "{value}" }}')[0]


@pytest.mark.parametrize(
    "value",
    "db-password-1 my-tls-cert-2024 XMLHttpReq sha256sum X509v3Ext HmacSHA256 AES256GCM ApiKeyV2 Ed25519Key build-cache-linux-2024".split(),  # noqa: SIM905
)
def test_names_of_things_are_no_chosen_values(value: str) -> None:
    assert not is_chosen_key(value)


def test_words_before_a_number_are_sought_elsewhere_where_they_are_a_password() -> None:
    assert judge_distinctiveness("lagoon-prairie-590", "PASSWORD") is Distinctiveness.ALONE
    assert judge_distinctiveness("lagoon-prairie-590") is Distinctiveness.NOT
    assert judge_distinctiveness("python-service-312", "PASSWORD") is Distinctiveness.NOT


@pytest.mark.parametrize(
    ("code", "judged"),
    [
        ("$env:API_TOKEN", True),
        ("Get-AzBatchAccountKey -Name x", False),
        ("Get-ADComputer x | Select-Object Name,ms-Mcs-AdmPwd", False),
        ("Get-AzKeyVaultKey -VaultName kv", None),
        ("Get-AzStorageAccountKey -Name x | Out-Null", None),
        ("Get-Process", None),
    ],
)
def test_statements_of_powershell(code: str, judged: bool | None) -> None:
    assert judge_powershell(code) is judged


def test_a_console_prints_a_secret_in_its_last_line() -> None:
    printed = find_printed_secrets("bin/rails console <<< 'ENV[\"API_TOKEN\"]'")
    assert printed is not None
    assert (printed.whole, printed.last) == (False, True)
    assert find_printed_secrets("bin/rails console <<< 'ENV.keys.length'") is None


def test_placeholders_of_keys_have_their_type() -> None:
    assert REDACTOR.redact_text("-".join(["482911"] * 8))[1] == {"RECOVERY_KEY": 1}
    assert REDACTOR.redact_text(f"node join 10.0.0.5:25000/{HEX[:32]}")[1]["JOIN_TOKEN"] == 1
