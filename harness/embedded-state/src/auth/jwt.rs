//! Signed tokens: JSON Web Tokens with ES256, the form of kube-apiserver's service account tokens with an EC key.
//!
//! The available token libraries bring a second cryptography stack or have an open advisory. The form is
//! simple: three base64 strings and a signature, which `ring`, our TLS library, makes and checks.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The error of signing a token: the system provides no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("signing a token: the system's source of randomness failed")]
pub struct SigningError;

/// Signs tokens and verifies its own.
pub struct Signer {
    key: EcdsaKeyPair,
    id: String,
    random: SystemRandom,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Signer {
    /// A signer with a new key.
    ///
    /// # Errors
    ///
    /// [`SigningError`].
    pub fn new() -> Result<Self, SigningError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| SigningError)?;
        let key =
            EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).map_err(|_| SigningError)?;
        let digest = ring::digest::digest(&ring::digest::SHA256, key.public_key().as_ref());
        Ok(Self { id: BASE64.encode(digest.as_ref()), key, random })
    }

    /// A token with these `claims`.
    ///
    /// # Errors
    ///
    /// [`SigningError`].
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, SigningError> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let part = |value: Vec<u8>| BASE64.encode(value);
        let claims = serde_json::to_vec(claims).map_err(|_| SigningError)?;
        let mut token = format!("{}.{}", part(header.to_string().into_bytes()), part(claims));
        let signature = self.key.sign(&self.random, token.as_bytes()).map_err(|_| SigningError)?;
        token.push('.');
        BASE64.encode_string(signature.as_ref(), &mut token);
        Ok(token)
    }

    /// The claims of a token, if this signer has signed it. The caller checks whether it is still valid.
    #[must_use]
    pub fn verify<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Value = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        if header["alg"] != "ES256" {
            return None;
        }
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        key.verify(signed.as_bytes(), &BASE64.decode(signature).ok()?).ok()?;
        serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()
    }

    /// The public key as a JSON web key set, the answer of `/openid/v1/jwks`.
    #[must_use]
    pub fn key_set(&self) -> Value {
        // An uncompressed point: one byte for the form, 32 for each coordinate.
        let point = self.key.public_key().as_ref();
        let coordinate = |from: usize| point.get(from..from + 32).map(|bytes| BASE64.encode(bytes));
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": coordinate(1), "y": coordinate(33),
        }]})
    }
}
