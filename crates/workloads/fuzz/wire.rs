//! The protobuf wire format as a tree, to make ONNX files from nothing and to change them.

/// A message: fields by number, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message(pub Vec<(u64, Item)>);

/// The content of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    /// A string, packed numbers, or bytes that are no message.
    Bytes(Vec<u8>),
    Message(Message),
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

impl Message {
    /// The same with one more field.
    pub fn with(mut self, number: u64, item: impl Into<Item>) -> Self {
        self.0.push((number, item.into()));
        self
    }

    /// The same with a field per item.
    pub fn with_all<I: Into<Item>>(mut self, number: u64, items: impl IntoIterator<Item = I>) -> Self {
        self.0.extend(items.into_iter().map(|i| (number, i.into())));
        self
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, item) in &self.0 {
            let (kind, body) = match item {
                Item::Varint(_) => (0, None),
                Item::Fixed64(_) => (1, None),
                Item::Fixed32(_) => (5, None),
                Item::Bytes(b) => (2, Some(b.clone())),
                Item::Message(m) => (2, Some(m.encode())),
            };
            varint(number << 3 | kind, &mut out);
            match item {
                Item::Varint(v) => varint(*v, &mut out),
                Item::Fixed64(b) => out.extend(b),
                Item::Fixed32(b) => out.extend(b),
                _ => {}
            }
            if let Some(body) = body {
                varint(body.len() as u64, &mut out);
                out.extend(body);
            }
        }
        out
    }

    /// Reads a message; what is in a field counts as a message when it can be read as one.
    pub fn decode(mut bytes: &[u8], depth: u32) -> Option<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = take_varint(&mut bytes)?;
            let item = match key & 7 {
                0 => Item::Varint(take_varint(&mut bytes)?),
                1 => Item::Fixed64(take(&mut bytes, 8)?.try_into().ok()?),
                5 => Item::Fixed32(take(&mut bytes, 4)?.try_into().ok()?),
                2 => {
                    let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                    let body = take(&mut bytes, length)?;
                    match (depth > 0 && !body.is_empty()).then(|| Self::decode(body, depth - 1)).flatten() {
                        Some(message) => Item::Message(message),
                        None => Item::Bytes(body.to_vec()),
                    }
                }
                _ => return None,
            };
            (key >> 3 > 0).then(|| fields.push((key >> 3, item)))?;
        }
        Some(Self(fields))
    }
}

impl From<&str> for Item {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<i64> for Item {
    fn from(value: i64) -> Self {
        Self::Varint(value as u64)
    }
}

impl From<f32> for Item {
    fn from(value: f32) -> Self {
        Self::Fixed32(value.to_le_bytes())
    }
}

impl From<Message> for Item {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}
