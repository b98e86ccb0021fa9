-- The times of an agent's last uses lie in its meter, and go to the table of uses many at once.
alter table meter add column recent BYTES;
