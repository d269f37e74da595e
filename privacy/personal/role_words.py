# ruff: noqa: E501 (word lists)
"""Words that say what a person is to a document: labels of forms, names of fields and elements."""

import re
import unicodedata
from functools import lru_cache

from tracemill.privacy.core.word_lists import TRANSCRIBED


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in text.split())


_WRITTEN = _words(
    """
    patient patients student pupil teacher tutor professor lecturer advisor adviser supervisor examiner candidate applicant plaintiff defendant claimant respondent petitioner appellant
    prosecutor judge lawyer attorney solicitor barrister notary witness suspect accused executor tenant landlord lessee lessor buyer seller purchaser customer client guest traveller traveler
    passenger visitor attendee participant delegate speaker presenter employee manager recruiter interviewer interviewee referee recipient addressee sender payee payer beneficiary donor
    borrower debtor creditor guarantor policyholder cardholder accountholder insured claimant member subscriber resident occupant nominee author coauthor editor translator illustrator photographer
    creator curator spouse husband wife father mother parent guardian child son daughter next_of_kin emergency_contact contact contact_person point_of_contact physician doctor dentist nurse
    surgeon therapist caregiver bill_to billed_to ship_to shipped_to sold_to deliver_to delivered_to invoice_to attn attention prepared_by approved_by reviewed_by signed_by written_by created_by
    modified_by updated_by changed_by issued_by requested_by submitted_by reported_by assigned_to checked_by authorised_by authorized_by booked_by last_author signatory signature inspector
    representative director chairman chairwoman chairperson secretary treasurer owner keeper registrant proprietor shareholder trustee deceased holder principal_investigator investigator
    full_name legal_name real_name name_of_patient name_and_surname first_and_last_name accompanied_by case_worker social_worker account_manager team_lead assignee reporter consultant instructor
    trainer coach attendees participants authors members people artist scientist researcher volunteer hired_by party_name lead_guest booking_name
    present anwesend anwesende pr\xe9sents presentes presenti aanwezig n\xe4rvarande obecni
    user display_name decision_maker caller callee complainant informant victim offender inmate prisoner heir dependant dependent fianc\xe9 fianc\xe9e partner godparent stepfather stepmother grandfather grandmother uncle aunt nephew niece cousin
    photo photograph foto byline by-line composer lyricist performer singer conductor pianist actor actress narrator producer screenwriter moderator facilitator organizer organiser organisator scribe minute_taker note_taker host_name
    name_on_card name_on_account name_on_ticket nameoncard account_name cardholder_name person_in_charge project_lead product_owner scrum_master case_manager key_worker pilot captain driver courier foreman operator_name shift_lead technician
    engineer surveyor appraiser adjuster underwriter broker realtor agent_name salesperson sales_rep account_executive cashier librarian counselor counsellor principal headteacher class_teacher form_tutor mentee mentor invigilator
    ordering_physician referring_physician attending_physician attending primary_care_provider midwife pharmacist radiologist pathologist anesthetist anaesthetist optometrist vet veterinarian carer next_kin
    picked_up_by signed_for_by received_by collected_by delivered_by packed_by inspected_by verified_by witnessed_by certified_by translated_by photographed_by edited_by compiled_by drawn_by designed_by taught_by supervised_by interviewed_by
    recorded_by entered_by registered_by handled_by paid_by sold_by cooked_by directed_by produced_by composed_by performed_by illustrated_by countersigned_by owned_by maintained_by closed_by opened_by resolved_by escalated_to reports_to
    empf\xe4nger empf\xe4ngerin k\xe4ufer k\xe4uferin verk\xe4ufer verk\xe4uferin besteller bestellerin kunde kundin auftraggeber auftraggeberin gast reisender reisende fahrgast passagier sch\xfcler sch\xfclerin studentin studierende studierender
    lehrer lehrerin klassenlehrer dozent dozentin betreuer betreuerin gutachter gutachterin pr\xfcfer pr\xfcferin pr\xfcfling kl\xe4ger kl\xe4gerin beklagter beklagte angeklagter angeklagte antragsteller antragstellerin antragsgegner zeuge zeugin
    richter richterin rechtsanwalt rechtsanw\xe4ltin anwalt anw\xe4ltin notar notarin mandant mandantin vermieter vermieterin mieter mieterin eigent\xfcmer eigent\xfcmerin halter halterin fahrer fahrerin arzt \xe4rztin hausarzt haus\xe4rztin patientin
    versicherter versicherte erbe erbin mutter vater ehepartner ehefrau ehemann kind sachbearbeiter sachbearbeiterin kontakt kontaktperson ansprechpartner ansprechpartnerin ansprechperson verfasser verfasserin autor autorin
    \xfcbersetzung \xfcbersetzer \xfcbersetzerin fotograf fotografin sprecher sprecherin moderation protokoll protokollf\xfchrer schriftf\xfchrer kassenwart steuerberater steuerberaterin makler maklerin gl\xe4ubiger schuldner schuldnerin z\xe4hlerableser
    gro\xdfmutter gro\xdfvater onkel tante neffe nichte schwester bruder sohn tochter partnerin lebensgef\xe4hrte lebensgef\xe4hrtin trauzeuge pate patin hebamme pfleger pflegerin therapeut therapeutin zahnarzt zahn\xe4rztin apotheker trainerin
    notfallkontakt erziehungsberechtigter erziehungsberechtigte sorgeberechtigter bevollm\xe4chtigter bevollm\xe4chtigte kontobevollm\xe4chtigter rechnungsempf\xe4nger lieferant_name anrufer anruferin melder meldende unterschrift gezeichnet
    bearbeiter bearbeiterin unterzeichner absender absenderin inhaber inhaberin nehmer nehmerin mitarbeiter mitarbeiterin bewerber bewerberin teilnehmer teilnehmerin mitglied vorgesetzter vorgesetzte name_und_vorname vor-_und_nachname vorname_und_nachname
    name_des_patienten name_des_kunden z._hd. zu_h\xe4nden gesch\xe4ftsf\xfchrer gesch\xe4ftsf\xfchrerin vorstand steuerpflichtiger verantwortlicher verantwortliche auszubildender geburtsname
    \xe9l\xe8ve \xe9tudiant \xe9tudiante enseignant enseignante professeur demandeur demanderesse d\xe9fendeur d\xe9fenderesse requ\xe9rant requ\xe9rante pr\xe9venu t\xe9moin juge avocat avocate notaire locataire bailleur propri\xe9taire acheteur acheteuse vendeur vendeuse
    traduction traducteur traductrice photographe illustrateur illustratrice animateur animatrice formateur formatrice encadrant directeur directrice g\xe9rant g\xe9rante mandataire h\xe9ritier h\xe9riti\xe8re grand-p\xe8re grand-m\xe8re
    oncle tante neveu ni\xe8ce fr\xe8re s\u0153ur \xe9poux \xe9pouse parrain marraine kin\xe9sith\xe9rapeute pharmacien pharmacienne sage-femme contact_d'urgence personne_\xe0_contacter sign\xe9_par re\xe7u_par livreur chauffeur conducteur conductrice
    cliente voyageur voyageuse passager passag\xe8re invit\xe9 m\xe9decin patiente infirmi\xe8re salari\xe9 salari\xe9e employ\xe9 employ\xe9e responsable destinataire exp\xe9diteur exp\xe9ditrice auteur autrice r\xe9dacteur signataire b\xe9n\xe9ficiaire assur\xe9 assur\xe9e
    titulaire souscripteur conjoint conjointe p\xe8re m\xe8re tuteur tutrice factur\xe9_\xe0 livr\xe9_\xe0 facturer_\xe0 livrer_\xe0 \xe0_l'attention_de nom_complet nom_et_pr\xe9nom pr\xe9nom_et_nom nom_pr\xe9nom adh\xe9rent adh\xe9rente personne interlocuteur candidat candidate
    alumno alumna estudiante profesor profesora docente demandante demandado demandada acusado acusada testigo juez jueza abogado abogada notario arrendatario arrendataria inquilino inquilina propietario propietaria comprador compradora vendedor vendedora
    traducci\xf3n traductor traductora fot\xf3grafo fot\xf3grafa director directora gerente apoderado apoderada heredero heredera abuelo abuela t\xedo t\xeda sobrino sobrina hermano hermana esposo esposa hijo hija padrino madrina
    enfermero enfermera odont\xf3logo farmac\xe9utico contacto_de_emergencia firmado_por recibido_por entregado_a conductor conductora encargado encargada jefe jefa responsable_de_turno ponente
    hu\xe9sped pasajero pasajera viajero viajera m\xe9dico m\xe9dica doctora paciente empleado empleada trabajador trabajadora persona_de_contacto contacto destinatario destinataria remitente autora firmante beneficiario beneficiaria asegurado asegurada
    titular solicitante c\xf3nyuge padre madre tutora facturar_a enviar_a a_la_atenci\xf3n_de nombre_completo nombre_y_apellidos nombre_y_apellido apellidos_y_nombre socio socia
    aluno aluna estudante professora r\xe9u testemunha juiz advogado advogada senhorio propriet\xe1rio propriet\xe1ria vendedora h\xf3spede passageiro passageira utente funcion\xe1rio funcion\xe1ria trabalhador trabalhadora respons\xe1vel pessoa_de_contato
    pessoa_de_contacto contato destinat\xe1rio destinat\xe1ria signat\xe1rio benefici\xe1rio benefici\xe1ria segurado segurada requerente c\xf4njuge pai m\xe3e nome_completo
    alunno alunna studente studentessa insegnante convenuto imputato testimone giudice avvocato notaio locatore proprietario proprietaria acquirente venditore ospite passeggero viaggiatore medico paziente dipendente lavoratore responsabile referente
    persona_di_contatto mittente autore firmatario beneficiaria assicurato intestatario richiedente coniuge tutore nome_e_cognome cognome_e_nome fatturare_a spedire_a
    leerling docent leraar eiser eiseres gedaagde verdachte getuige rechter advocaat notaris huurder verhuurder eigenaar koper verkoper klant reiziger arts huisarts pati\xebnt werknemer medewerker contactpersoon contact_persoon ontvanger geadresseerde
    afzender ondertekenaar begunstigde verzekerde rekeninghouder kaarthouder aanvrager echtgenoot echtgenote vader moeder voogd t.a.v. naam volledige_naam
    elev l\xe4rare l\xe6rer opettaja oppilas opiskelija k\xe4rande svarande saks\xf8ker saks\xf8kt kantaja vastaaja vittne vitne vidne advokat hyresg\xe4st lejer leietaker vuokralainen \xe4gare eier ejer omistaja k\xf6pare kj\xf8per k\xf8ber ostaja s\xe4ljare selger s\xe6lger kund
    asiakas g\xe4st gjest g\xe6st vieras passagerare passasjer matkustaja l\xe4kare lege l\xe6ge l\xe4\xe4k\xe4ri potilas pasient anst\xe4lld ansatt medarbejder medarbetare ty\xf6ntekij\xe4 kontaktperson yhteyshenkil\xf6 mottagare mottaker modtager vastaanottaja avs\xe4ndare afsender avsender
    l\xe4hett\xe4j\xe4 f\xf6rfattare forfatter tekij\xe4 s\xf6kande s\xf8ker ans\xf8ger hakija kontoinnehavare kontohaver navn namn nimi koko_nimi fullt_navn fullst\xe4ndigt_namn
    ucze\u0144 uczennica studentka nauczyciel nauczycielka pow\xf3d pow\xf3dka pozwany pozwana oskar\u017cony oskar\u017cona \u015bwiadek s\u0119dzia adwokat notariusz najemca wynajmuj\u0105cy w\u0142a\u015bciciel w\u0142a\u015bcicielka kupuj\u0105cy nabywca sprzedawca klient klientka go\u015b\u0107 pasa\u017cer pasa\u017cerka lekarz lekarka
    pacjent pacjentka pracownik pracownica osoba_kontaktowa osoba_do_kontaktu odbiorca adresat nadawca autorka beneficjent ubezpieczony ubezpieczona wnioskodawca ma\u0142\u017conek ojciec matka opiekun imi\u0119_i_nazwisko nazwisko_i_imi\u0119
    \u017e\xe1k \u017e\xe1kyn\u011b u\u010ditel u\u010ditelka \u017ealobce \u017ealobkyn\u011b \u017ealovan\xfd \u017ealovan\xe1 ob\u017ealovan\xfd sv\u011bdek soudce advok\xe1t n\xe1jemce majitel majitelka vlastn\xedk kupuj\xedc\xed prod\xe1vaj\xedc\xed z\xe1kazn\xedk cestuj\xedc\xed l\xe9ka\u0159 l\xe9ka\u0159ka pacient pacientka zam\u011bstnanec zam\u011bstnankyn\u011b kontaktn\xed_osoba p\u0159\xedjemce odb\u011bratel odes\xedlatel \u017eadatel
    poji\u0161t\u011bn\xfd otec jm\xe9no_a_p\u0159\xedjmen\xed meno_a_priezvisko
    tanul\xf3 di\xe1k tan\xe1r felperes alperes v\xe1dlott tan\xfa b\xedr\xf3 \xfcgyv\xe9d b\xe9rl\u0151 tulajdonos vev\u0151 v\xe1s\xe1rl\xf3 elad\xf3 \xfcgyf\xe9l vend\xe9g utas orvos beteg p\xe1ciens munkav\xe1llal\xf3 kapcsolattart\xf3 c\xedmzett felad\xf3 szerz\u0151 kedvezm\xe9nyezett biztos\xedtott k\xe9relmez\u0151 ig\xe9nyl\u0151 n\xe9v teljes_n\xe9v
    student\u0103 reclamant p\xe2r\xe2t inculpat martor judec\u0103tor chiria\u0219 proprietar cump\u0103r\u0103tor v\xe2nz\u0103tor oaspete pasager angajat persoan\u0103_de_contact destinatar expeditor beneficiar asigurat solicitant nume_\u0219i_prenume nume_complet
    \xf6\u011frenci \xf6\u011fretmen davac\u0131 daval\u0131 san\u0131k tan\u0131k hakim avukat kirac\u0131 mal_sahibi al\u0131c\u0131 sat\u0131c\u0131 m\xfc\u015fteri misafir konuk yolcu doktor hekim hasta \xe7al\u0131\u015fan personel ilgili_ki\u015fi irtibat_ki\u015fisi ileti\u015fim_ki\u015fisi g\xf6nderen yazar hesap_sahibi ad_soyad ad\u0131_soyad\u0131 ad\u0131_ve_soyad\u0131 isim
    u\u010denik u\u010denica tu\u017eitelj tu\u017eenik svjedok odvjetnik vlasnik kupac klijent putnik lije\u010dnik pacijent zaposlenik kontakt_osoba primatelj po\u0161iljatelj ime_i_prezime \xf5pilane patsient kontaktisik skol\u0113ns pacients klients kontaktpersona v\u0101rds_uzv\u0101rds mokinys pacientas klientas
    kontaktinis_asmuo vardas_pavard\u0117 h\u1ecd_t\xean h\u1ecd_v\xe0_t\xean b\u1ec7nh_nh\xe2n kh\xe1ch_h\xe0ng ng\u01b0\u1eddi_nh\u1eadn nama_lengkap nama pasien pelanggan siswa penerima tamu pengirim
    """
)
_LEAST = 5  # letters of a word that is also searched without its accents


def _in_ascii(word: str) -> set[str]:
    """Return a word as names of fields and columns spell it: with `ae`, `oe`, `ue`, or without accents."""
    transcribed = "".join(TRANSCRIBED.get(letter, letter) for letter in word)
    plain = (
        unicodedata.normalize("NFKD", each.replace("\u0142", "l").replace("\u0131", "i"))
        for each in (word, transcribed)
    )
    return {"".join(letter for letter in each if letter.isascii()) for each in plain}


_ASCII = {each for word in _WRITTEN for each in _in_ascii(word) if len(each) >= _LEAST}
LATIN_ROLES = (*_WRITTEN, *sorted(_ASCII.difference(_WRITTEN)))
"""Labels of one person in languages of Latin script, in small letters."""
_COMPOUND = re.compile(
    r"\w{3,}(?:empf\xe4nger|k\xe4ufer|besteller|inhaber|nehmer|halter|partner|steller|geber|berater|leiter|arzt|lehrer|anwalt|person|persoon|houder|nemer|gever|gast|klient|kunde|haver|innehavare|holder)(?:in)?"
)
"""Compounds of German, Dutch and the Nordic languages that end with the word for a person."""
_PARTICLES = r"(?:de|du|des|de la|de l'|del|della|dello|dell'|do|da|di|a|\xe0|al|para|pour|per|of|for|van|von|voor|der|f\xfcr|till|til|z|do|ds|w|na|\u0219i)"
_BY_BIRTH = frozenset(
    [
        "name",
        "nom",
        "nombre",
        "nome",
        "naam",
        "navn",
        "namn",
        "nimi",
        "nume",
        "imię",
        "ime",
        "jméno",
        "név",
        "isim",
        "nama",
    ]
)
_PEOPLE = frozenset(
    [
        "user",
        "users",
        "person",
        "persons",
        "people",
        "staff",
        "profile",
        "profiles",
        "accounts",
        "team",
        "crew",
        "personnel",
        "humanname",
        "family",
        "relatives",
        "children",
    ]
)
_ROLES = frozenset(LATIN_ROLES)
_MOST_WORDS = 6
_BOUNDARY = re.compile(r"(?<=[a-z\xdf-\xff])(?=[A-Z\xc0-\xde])|[ _./\\\u00a0-]+")


def split_label(label: str) -> list[str]:
    """Return the words of a label or of a field's name in small letters."""
    label = label.replace("\u0130", "i")
    plain = label.lower()
    if plain in _ROLES:
        return [plain]
    return [word.lower() for word in _BOUNDARY.split(label) if word]


@lru_cache(maxsize=4096)
def is_role_label(label: str) -> bool:
    """Tell whether a label names a person: `lead guest`, `lastModifiedBy`, `nom du patient`.

    The word for the person is the last one, or the first one before a particle, or stands after a word for
    names.
    """
    words = split_label(label)
    if words and len(words[-1]) > 3 and words[-1][-1] == "s" and words[-1][:-1] in _ROLES:
        words[-1] = words[-1][:-1]
    while words and words[-1] in ("name", "names", "fullname") and len(words) > 1:
        words.pop()
    if not words or len(words) > _MOST_WORDS:
        return False
    for size in (1, 2, 3, 4):
        tail, head = " ".join(words[-size:]), " ".join(words[:size])
        if tail in _ROLES or (size == 1 and _COMPOUND.fullmatch(tail)):
            return True
        rest = " ".join(words[size:])
        if head in _ROLES and re.match(rf"{_PARTICLES}(?: |'|$)", rest):
            return True
    return words[0] in _BY_BIRTH and any(word in _ROLES for word in words[1:])


def is_name_label(label: str) -> bool:
    """Tell whether a label is a bare word for names, which things have too."""
    words = split_label(label)
    return bool(words) and words[-1] in _BY_BIRTH


def is_holder_of_people(name: str) -> bool:
    """Tell whether a key, a type or a table of this name holds what describes persons."""
    words = split_label(name)
    return bool(words) and (words[-1] in _PEOPLE or is_role_label(name))
