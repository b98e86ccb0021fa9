// Passkeys: asked for by the desk's name, so never under a bare address, and only with the person's own verification.

import { deskTime } from "./sign.js";

const encode = (text) => new TextEncoder().encode(text);
const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));
const base64url = (bytes) => base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

export function isSupported() {
  return "PublicKeyCredential" in globalThis && !/^[\d.]+$|^\[/.test(location.hostname);
}

// What is signed says what for, for whom and when, so the desk need not remember that it asked.
async function challenge(purpose, bound, askedAt) {
  return crypto.subtle.digest("SHA-256", encode(`deskmate passkey ${purpose}\n${bound}\n${askedAt}`));
}

// Makes a passkey: as `desk_passkey_add` takes it, and who claims the desk or joins it. `user` are the bytes by which the
// authenticator knows whose it is.
export async function make(purpose, bound, user, name) {
  const askedAt = await deskTime();
  const made = await navigator.credentials.create({
    publicKey: {
      challenge: await challenge(purpose, bound, askedAt),
      rp: { id: location.hostname, name: "Deskmate" },
      user: { id: user, name, displayName: name },
      pubKeyCredParams: [{ type: "public-key", alg: -7 }],
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      attestation: "none",
    },
  });
  return {
    id: base64url(made.rawId),
    public_key: base64(made.response.getPublicKey()),
    asked_at: askedAt,
    client_data: base64(made.response.clientDataJSON),
    authenticator_data: base64(made.response.getAuthenticatorData()),
  };
}

// Asks for any passkey of this desk.
export async function answer(purpose, bound) {
  const askedAt = await deskTime();
  const given = await navigator.credentials.get({
    publicKey: { challenge: await challenge(purpose, bound, askedAt), rpId: location.hostname, userVerification: "required" },
  });
  return {
    id: base64url(given.rawId),
    asked_at: askedAt,
    client_data: base64(given.response.clientDataJSON),
    authenticator_data: base64(given.response.authenticatorData),
    signature: base64(given.response.signature),
  };
}
