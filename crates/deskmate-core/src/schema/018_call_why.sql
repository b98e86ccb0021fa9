-- What the desk's answer to a call came from, as a list of sentences.
alter table gateway_call add column why text;
