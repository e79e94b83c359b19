//! Statements signed with a key of the user: DSSE (<https://github.com/secure-systems-lab/dsse>), with ECDSA on P-256 with
//! SHA-256, or Ed25519.

use super::statement::{PREDICATE_TYPE, STATEMENT_TYPE};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    UnparsedPublicKey,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// The type of the payload in the envelope.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The prefix of an uncompressed point of P-256 in a SubjectPublicKeyInfo (RFC 5480).
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The prefix of a key of Ed25519 in a SubjectPublicKeyInfo (RFC 8410).
const ED25519_PREFIX: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Why an envelope could not be created or is not trusted. Never contains any part of a secret key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The private key cannot be used.
    #[error(
        "not a private key in PEM and PKCS#8, of ECDSA on P-256 or of Ed25519; \
         'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256' makes one"
    )]
    PrivateKey,
    /// The public key cannot be used.
    #[error(
        "not a public key in PEM (BEGIN PUBLIC KEY), of ECDSA on P-256 or of Ed25519; \
         'openssl pkey -in KEY -pubout' prints that of a private key"
    )]
    PublicKey,
    /// The random number generator of the machine failed.
    #[error("it could not be signed: the machine gives no random numbers")]
    Signing,
    /// Not an envelope.
    #[error("not a DSSE envelope: JSON with payloadType, payload in base64 and signatures")]
    Form,
    /// Another kind of payload.
    #[error("the envelope's payload is not an in-toto statement ({PAYLOAD_TYPE})")]
    PayloadType,
    /// No signature was created with that key.
    #[error("no signature of the envelope is of that key over what it holds")]
    Signature,
    /// It is signed, but not a statement of a test result.
    #[error("the envelope is signed, and what it holds is not an in-toto statement of a test result")]
    Statement,
}

/// A key for signing.
pub enum SigningKey {
    /// ECDSA on P-256 with SHA-256.
    P256(Box<EcdsaKeyPair>),
    /// Ed25519.
    Ed25519(Box<Ed25519KeyPair>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(<redacted>)")
    }
}

impl SigningKey {
    /// Reads a private key in PEM and PKCS#8.
    ///
    /// # Errors
    /// It is not one of these kinds of keys.
    pub fn from_pem(text: &[u8]) -> Result<SigningKey, EnvelopeError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text).map_err(|_| EnvelopeError::PrivateKey)?;
        let der = der.secret_pkcs8_der();
        let random = SystemRandom::new();
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &random) {
            return Ok(SigningKey::P256(Box::new(pair)));
        }
        // OpenSSL leaves out the public key, which the strict parser requires.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| EnvelopeError::PrivateKey)?;
        Ok(SigningKey::Ed25519(Box::new(pair)))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        match self {
            SigningKey::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), message);
                signature.map(|signature| signature.as_ref().to_vec()).map_err(|_| EnvelopeError::Signing)
            }
            SigningKey::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }

    /// The public key.
    fn public(&self) -> PublicKey {
        match self {
            SigningKey::P256(pair) => PublicKey::P256(pair.public_key().as_ref().to_vec()),
            SigningKey::Ed25519(pair) => PublicKey::Ed25519(pair.public_key().as_ref().to_vec()),
        }
    }
}

/// A key for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
    /// A key of Ed25519.
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo in PEM.
    ///
    /// # Errors
    /// It is not one of these kinds of keys.
    pub fn from_pem(text: &[u8]) -> Result<PublicKey, EnvelopeError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| EnvelopeError::PublicKey)?;
        let der: &[u8] = der.as_ref();
        match (der.strip_prefix(P256_PREFIX), der.strip_prefix(ED25519_PREFIX)) {
            (Some(point), _) if point.len() == 65 => Ok(PublicKey::P256(point.to_vec())),
            (_, Some(key)) if key.len() == 32 => Ok(PublicKey::Ed25519(key.to_vec())),
            _ => Err(EnvelopeError::PublicKey),
        }
    }

    fn holds(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            PublicKey::P256(key) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key).verify(message, signature)
            }
            PublicKey::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        }
        .is_ok()
    }

    /// Its identifier in an envelope: SHA-256 of its SubjectPublicKeyInfo.
    fn id(&self) -> String {
        let (prefix, key) = match self {
            PublicKey::P256(key) => (P256_PREFIX, key),
            PublicKey::Ed25519(key) => (ED25519_PREFIX, key),
        };
        let digest = Sha256::new().chain_update(prefix).chain_update(key).finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
struct Signature {
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// The bytes that are signed: the type of the payload and the payload, each with its length.
fn authenticated(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// The envelope of a statement, signed with that key, as JSON.
///
/// # Errors
/// The random number generator of the machine failed.
pub fn sealed(statement: &Value, key: &SigningKey) -> Result<Value, EnvelopeError> {
    let payload = statement.to_string().into_bytes();
    let sig = STANDARD.encode(key.sign(&authenticated(&payload))?);
    let envelope = Envelope {
        payload: STANDARD.encode(&payload),
        payload_type: PAYLOAD_TYPE.to_owned(),
        signatures: vec![Signature { keyid: key.public().id(), sig }],
    };
    serde_json::to_value(envelope).map_err(|_| EnvelopeError::Form)
}

/// The statement in an envelope that was signed with this key.
///
/// # Errors
/// It is not an envelope, is not signed with that key, or does not contain a statement of a test result.
pub fn open_envelope(text: &str, key: &PublicKey) -> Result<Value, EnvelopeError> {
    let envelope: Envelope = serde_json::from_str(text).map_err(|_| EnvelopeError::Form)?;
    let decoded = |text: &str| {
        STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).map_err(|_| EnvelopeError::Form)
    };
    let payload = decoded(&envelope.payload)?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(EnvelopeError::PayloadType);
    }
    let message = authenticated(&payload);
    let signed = |one: &Signature| decoded(&one.sig).is_ok_and(|signature| key.holds(&message, &signature));
    if !envelope.signatures.iter().any(signed) {
        return Err(EnvelopeError::Signature);
    }
    let statement: Value = serde_json::from_slice(&payload).map_err(|_| EnvelopeError::Statement)?;
    let is = |key: &str, wanted: &str| statement[key] == wanted;
    if is("_type", STATEMENT_TYPE) && is("predicateType", PREDICATE_TYPE) {
        Ok(statement)
    } else {
        Err(EnvelopeError::Statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Digests, statement};
    use rcgen::{KeyPair as Generated, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SignatureAlgorithm};
    use serde_json::json;

    fn keys(kind: &'static SignatureAlgorithm) -> (SigningKey, PublicKey) {
        let pair = Generated::generate_for(kind).expect("a key");
        let secret = SigningKey::from_pem(pair.serialize_pem().as_bytes()).expect("a private key");
        (secret, PublicKey::from_pem(pair.public_key_pem().as_bytes()).expect("a public key"))
    }

    fn stated() -> Value {
        json!({"_type": STATEMENT_TYPE,
               "predicateType": PREDICATE_TYPE, "predicate": {"result": "WARNED"}})
    }

    #[test]
    fn a_signature_is_verified_only_by_its_public_key() {
        for kind in [&PKCS_ECDSA_P256_SHA256, &PKCS_ED25519] {
            let (secret, public) = keys(kind);
            let envelope = sealed(&stated(), &secret).expect("an envelope");
            assert_eq!(envelope["signatures"][0]["keyid"], json!(public.id()));
            assert_eq!(open_envelope(&envelope.to_string(), &public), Ok(stated()));
            for other in [&PKCS_ECDSA_P256_SHA256, &PKCS_ED25519] {
                let refused = open_envelope(&envelope.to_string(), &keys(other).1);
                assert_eq!(refused, Err(EnvelopeError::Signature));
            }
            assert_eq!(format!("{secret:?}"), "SigningKey(<redacted>)");
        }
    }

    #[test]
    fn a_changed_envelope_is_refused() {
        let (secret, public) = keys(&PKCS_ECDSA_P256_SHA256);
        let envelope = sealed(&stated(), &secret).expect("an envelope");
        let opened = |change: &dyn Fn(&mut Value)| {
            let mut other = envelope.clone();
            change(&mut other);
            open_envelope(&other.to_string(), &public)
        };
        let better = STANDARD.encode(stated().to_string().replace("WARNED", "PASSED"));
        assert_eq!(opened(&|e| e["payload"] = json!(better)), Err(EnvelopeError::Signature));
        assert_eq!(opened(&|e| e["payloadType"] = json!("text/plain")), Err(EnvelopeError::PayloadType));
        assert_eq!(opened(&|e| e["signatures"] = json!([])), Err(EnvelopeError::Signature));
        assert_eq!(opened(&|e| e["payload"] = json!("?")), Err(EnvelopeError::Form));
        let foreign = sealed(&json!({"_type": "x"}), &secret).expect("an envelope");
        assert_eq!(open_envelope(&foreign.to_string(), &public), Err(EnvelopeError::Statement));
    }

    /// The encoding that is signed: the example in the protocol's document, apart from the type of the payload.
    #[test]
    fn the_signed_encoding_contains_lengths() {
        assert_eq!(authenticated(b"hello world"), b"DSSEv1 28 application/vnd.in-toto+json 11 hello world");
    }

    #[test]
    fn invalid_keys_are_refused_without_showing_them() {
        for text in ["", "secret", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"] {
            assert_eq!(SigningKey::from_pem(text.as_bytes()).err(), Some(EnvelopeError::PrivateKey));
            assert_eq!(PublicKey::from_pem(text.as_bytes()).err(), Some(EnvelopeError::PublicKey));
        }
    }

    #[test]
    fn nothing_judged_and_nothing_named_is_nothing_to_attest() {
        let digests = Digests { report: "11".to_owned(), events: "22".to_owned() };
        let why = statement(&harness_core::ledger::Ledger::default(), &digests, None)
            .expect_err("nothing was judged");
        assert!(why.contains("nothing was judged"), "{why}");
    }
}
