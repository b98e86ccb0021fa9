-- What a token is for, or how the invited person is to be called: texts of people, so they are no facts of the record.
alter table credential add column note text;
update credential set note = owner where kind = 'invitation' and revoked_at is null;
