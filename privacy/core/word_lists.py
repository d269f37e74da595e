"""Word lists: shared account names, common words, mail domains, weak passwords, bank number sizes."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Accounts of container images and CI runners, and stand-ins of documentation.
SHARED_NAMES = _words(
    """
    user users username youruser yourname your you me name someone somebody myuser myname runner
    runneradmin ubuntu node app apps vscode root admin administrator shared public default guest
    circleci travis jenkins gitpod codespace openhands swe-bench sweagent swe jovyan ec2-user centos
    debian fedora alpine arch vagrant docker devuser developer dev coder git www-data nobody nonroot
    builder build python ruby postgres mysql nginx pi deploy deployer test tester testuser linuxbrew
    claude agent worker sandbox project projects workspace home data all ftp http service daemon
    appuser container foo bar baz
    """
)
# Words that may be user names but mean something else in code and prose.
COMMON_WORDS = SHARED_NAMES | _words(
    """
    about account action active address alpha array assets author back base basic beta bill bin
    block blog board body book bool branch bugs cache call case cert chat check child class clean
    client cloud code color comment commit common config console content context contrib control
    copy core count cpus create cross current custom dashboard date debug delta demo desk dist docs
    domain done down draft drive echo edit email empty engine entry error event example exec expo
    export face fast feed field file files filter find first flag flow folder form format frame
    frank free from front full game gate gene grace grant graph green group guide hash head help
    hook hope host html http human icon image images import index info init input install issue item
    jack joy json june just kernel key kind lance lang last lead level lib library light line link
    linux list load local log login logo logs long mail main make manager many mark mask master
    match matrix media menu message meta mike misc mock mode model module more name native net
    network new next nick note null number object office open option order origin other output owner
    pack package page panel parent park part pass patch path pat pattern person phone photo pipe
    place plan play plus point port post power print private process product profile prompt proxy
    query queue quick range rate read real record remote repo report request reset response result
    review rich robin rose route rule rust safe sale same sample save scan schema scope script
    search self send server session set settings setup share shell shop sign site size sky slot
    small snap sort source space spec stack staff stage star start state static status step stop
    store stream string style submit sum sun support system table target task team temp template
    term text theme time title todo tool tools topic total track tree type unit update upload util
    value vendor version video view wade wall watch water wave website week wheel will window
    windows word work world wrap write year young zone
    """
)
# Top-level domains that tell addresses from code (`a@b.T`, `pkg@1.x`, `fixture@file.py`).
DOMAINS = _words(
    """
    com org net edu gov mil int info biz name pro io ai app dev co me xyz tech cloud email online site
    store blog systems software digital agency studio design world today live life team works solutions
    services group company network global academy science health legal media news foundation university
    us uk eu de fr it es pt nl be ch at dk se no fi is ie pl cz sk hu ro bg gr tr ru ua by lt lv ee si
    hr ba cn jp kr tw hk sg my th vn id ph in pk bd lk np ir iq il sa ae eg ma tn ng ke za gh au nz ca
    mx br ar cl pe uy ve museum aero coop jobs mobi travel cat post asia eus gal berlin hamburg koeln
    cologne bayern wien swiss paris london nyc tokyo amsterdam art shop club fun space website tools
    consulting engineering ventures partners ltd llc inc gmbh bio tv cc gg im fm wiki ink page zone
    social chat codes computer science money finance capital bank law legal care clinic house land farm
    email earth green energy solar studio photo photos video audio blog press news guru expert community
    am ge kz uz az mn al mk lu mc ad cy mt li is rs me lb jo kw qa om bh sy np mm kh la mo fj pr do cr
    gt hn ni sv cu pa ec bo ug tz et zm zw rw sn ci cm ao mz mu
    """
)
# Local parts of addresses that belong to no person.
ROLES = _words(
    """
    git hg svn noreply no-reply donotreply notifications user username you your name me someone
    """
)
# Public resolvers, first addresses of private networks, and made-up addresses.
PUBLIC_ADDRESSES = _words(
    """
    1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 1.2.3.4 4.4.4.4 5.6.7.8 11.22.33.44 12.34.56.78
    10.0.0.1 10.0.2.2 10.0.2.15 172.16.0.1 172.17.0.1 172.17.0.2 192.168.0.1 192.168.1.1
    """
)
# Passwords of documentation and of local databases.
WEAK_PASSWORDS = _words(
    """
    pass password passwd pw pwd secret user username test example postgres root admin guest mysql
    redis tiger
    """
)
# Values of settings that are no secret, besides `COMMON_WORDS`.
SETTING_WORDS = _words(
    """
    true false yes no on off none null auto info debug trace warn error fatal utf-8
    development production staging testing integration acceptance preview sandboxed localhost
    enabled disabled required optional standard advanced anonymous username password database
    postgres postgresql mariadb mongodb sqlite3 rabbitmq elasticsearch opensearch memcached
    filesystem in-memory warning critical information verbose undefined internal external changeme
    change-me noreply hostname timezone language unlimited automatic same-origin utf8mb4 utf-8-sig
    encrypted decrypted hidden sensitive masked deployed staged expired revoked inactive opaque
    us-ascii readonly read-only readwrite read-write truncate bootstrap
    """
)
# Words of sentences; no passphrase of random words has them.
SPEECH = _words(
    """
    the is are was be to of for and or not no in on at by with from your you my we it this that if as
    an must should can cannot will please enter has have been does did do use set new old same
    """
)
# Words of forms and messages about passwords, in several languages.
LABELS = _words(
    """
    character characters chars letters digits numbers minimum maximum least most between length long
    short weak strong enter confirm repeat current forgot forgotten change reset remember login log sign
    wrong incorrect match mismatch empty missing needed mandatory zeichen mindestens buchstaben eingeben
    wiederholen falsch passwort kennwort wachtwoord contrasena senha salasana adgangskode parola lozinka
    heslo jelszo geslo caracteres lettres minimo motdepasse parool slaptazodis parole sandi wachtwoorden
    passwords authentication authorization verification registration confirmation identification
    """
)
# Characters of international bank account numbers by country, and countries where all but the country's
# letters are digits (ISO 13616, registry).
BANK_NUMBER_SIZES = {
    entry[:2]: int(entry[2:])
    for entry in _words(
        """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24
    FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
    LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22
    SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20
    """
    )
}
DIGITS_ONLY_BANKS = _words(
    "AE AT BA BE CZ DE DK EE ES FI FO GL HR HU IL IS LT ME NO PL PT RS SE SI SK TL TN XK"
)
# Made-up hardware addresses.
SAMPLE_HARDWARE = _words(
    "0123456789ab 001122334455 aabbccddeeff 010203040506 0102030a0b0c 123456789abc deadbeefcafe 112233445566"
)
# Words in author names that are programs or no persons.
NO_PERSONS = _words(
    """
    bot bot> claude copilot github gitlab dependabot dependabot[bot] renovate codex cursor devin
    openhands aider gemini gpt chatgpt ai assistant agent swe-agent actions ci automation system root
    your name test tester user example an a the not sorry sure using looking trying getting sonnet opus
    haiku anthropic openai
    """
)
# Names of machines in documentation.
MACHINE_WORDS = _words("localhost hostname server machine remote remotehost myhost computer")
# Local parts of addresses in documentation.
SAMPLE_NAMES = _words(
    """
    info support hello contact mail email sales noreply test1 test2 a b c x y z alice bob john jane joe
    john.doe jane.doe johndoe janedoe foo.bar first.last firstname.lastname bot password pass pwd secret token
    """
)

TRANSCRIBED = {
    "\xe4": "ae",
    "\xf6": "oe",
    "\xfc": "ue",
    "\xf8": "oe",
    "\xe5": "aa",
    "\xdf": "ss",
    "\xe6": "ae",
}
"""Letters as addresses and names of fields write them."""
