-- Secrets, encrypted. A removed one keeps its row without a value, so that its versions go on and none comes back.
create table secret (
    name text primary key,
    version bigint not null,
    nonce BYTES,
    sealed BYTES,
    fingerprint text not null,
    created_at bigint not null,
    created_by text not null,
    rotated_at bigint,
    rotated_by text,
    removed_at bigint
);
