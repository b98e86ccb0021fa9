//! The values that cross between Rust and both engines.

use std::error::Error as StdError;

use postgres::types::{IsNull, ToSql, Type, private::BytesMut};

use crate::{Error, Kind, Result};

/// A parameter of a statement, borrowed from the caller.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// SQL null.
    Null,
    /// A 64-bit integer; times are microseconds since 1970 in UTC.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// Text, without NUL.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// Collects parameters in the order of their numbers: `args![id, now]` binds `$1` and `$2`.
#[macro_export]
macro_rules! args {
    () => { &[] };
    ($($value:expr),+ $(,)?) => { &[$($crate::ToParam::to_param(&$value)),+] };
}

/// A Rust value that can be bound to a parameter.
pub trait ToParam {
    /// Borrows the value as a parameter.
    fn to_param(&self) -> Param<'_>;
}

macro_rules! to_param {
    ($($type:ty => |$v:ident| $param:expr),+ $(,)?) => {
        $(impl ToParam for $type {
            fn to_param(&self) -> Param<'_> { let $v = self; $param }
        })+
    };
}

to_param! {
    i64 => |v| Param::Int(*v),
    i32 => |v| Param::Int(i64::from(*v)),
    u32 => |v| Param::Int(i64::from(*v)),
    bool => |v| Param::Bool(*v),
    str => |v| Param::Text(v),
    String => |v| Param::Text(v),
    [u8] => |v| Param::Bytes(v),
    Vec<u8> => |v| Param::Bytes(v),
    [u8; 32] => |v| Param::Bytes(v),
    Value => |v| match v {
        Value::Null => Param::Null,
        Value::Int(v) => Param::Int(*v),
        Value::Text(v) => Param::Text(v),
        Value::Bytes(v) => Param::Bytes(v),
    },
}

impl<T: ToParam + ?Sized> ToParam for &T {
    fn to_param(&self) -> Param<'_> {
        (**self).to_param()
    }
}

impl<T: ToParam> ToParam for Option<T> {
    fn to_param(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, ToParam::to_param)
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Param::Null => Ok(IsNull::Yes),
            Param::Int(v) if *ty == Type::INT4 => i32::try_from(*v)?.to_sql(ty, out),
            // Values that were read come as integers, and go back into another store as what they are.
            Param::Int(v) if *ty == Type::BOOL => (*v != 0).to_sql(ty, out),
            Param::Int(v) => v.to_sql(ty, out),
            Param::Bool(v) => v.to_sql(ty, out),
            Param::Text(v) => v.to_sql(ty, out),
            Param::Bytes(v) => v.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

/// A value that came back. Booleans come as 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL null.
    Null,
    /// A 64-bit integer or a boolean.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// One row of an answer; columns are read by their position.
#[derive(Clone, Debug)]
pub struct Row {
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self { values }
    }

    /// The value in a column, counted from 0.
    pub fn get<T: FromValue>(&self, column: usize) -> Result<T> {
        let value = self.values.get(column).ok_or_else(|| Error::new(Kind::Other, format!("the row has no column {column}")))?;
        T::from_value(value).ok_or_else(|| Error::new(Kind::Other, format!("column {column} holds another type: {value:?}")))
    }

    /// All values, for whoever copies whole tables.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// All values as parameters, in their order.
    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        self.values.iter().map(ToParam::to_param).collect()
    }
}

/// A Rust type that a column can be read as.
pub trait FromValue: Sized {
    /// Reads the value, or `None` where it is of another kind.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Int(v) = value { Some(*v) } else { None }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(|v| v != 0)
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(v) = value { Some(v.clone()) } else { None }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Bytes(v) = value { Some(v.clone()) } else { None }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        if *value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}
