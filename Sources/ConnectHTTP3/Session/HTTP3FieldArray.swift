internal import CNghttp3
internal import Connect

/// The header fields of one request or trailer, as libnghttp3 wants them. One is kept by a session and used for every request,
/// so that a call allocates nothing here.
///
/// Names and values are copied one behind the other into one block of memory, which libnghttp3 copies on submission.
/// The pointers are set only then, since the block may move while it grows.
struct HTTP3FieldArray {
  private var fields: [nghttp3_nv] = []
  private var bytes: [UInt8] = []

  /// What is larger was for one request, and is not kept.
  private static var maximumKeptBytes: Int { 64 << 10 }

  init() {
    self.fields.reserveCapacity(32)
    self.bytes.reserveCapacity(2 << 10)
  }

  /// Names, values and 32 bytes for each field (RFC 9114, section 4.2.2).
  var listSize: Int { self.bytes.count + 32 * self.fields.count }

  /// Replaces all fields with those of a request.
  ///
  /// - Parameter contentLength: Nil for no such field.
  mutating func replaceAll(with request: HTTPStreamRequest, authority: String, contentLength: Int?) {
    self.removeAll()
    self.append(name: ":method", value: request.method.rawValue)
    self.append(name: ":scheme", value: "https")
    self.append(name: ":authority", value: request.authority ?? authority)
    self.append(name: ":path", value: request.target)
    self.append(request.headers)
    if let contentLength { self.append(name: "content-length", value: String(contentLength)) }
  }

  mutating func removeAll() {
    if self.bytes.capacity > Self.maximumKeptBytes {
      self = Self()
    } else {
      self.fields.removeAll(keepingCapacity: true)
      self.bytes.removeAll(keepingCapacity: true)
    }
  }

  mutating func append(_ headers: Headers) {
    let fields = headers.fields
    for index in fields.indices { self.append(name: fields[index].name, value: fields[index].value) }
  }

  mutating func append(name: String, value: String) {
    self.bytes.append(contentsOf: name.utf8)
    self.bytes.append(contentsOf: value.utf8)
    self.fields.append(
      nghttp3_nv(name: nil, value: nil, namelen: name.utf8.count, valuelen: value.utf8.count, flags: 0)
    )
  }

  /// Gives the finished array to `body`; it holds until `body` returns.
  mutating func withFields<R>(_ body: (UnsafePointer<nghttp3_nv>?, Int) -> R) -> R {
    self.bytes.withUnsafeMutableBufferPointer { bytes in
      var next = bytes.baseAddress
      return self.fields.withUnsafeMutableBufferPointer { fields in
        for index in fields.indices {
          fields[index].name = next
          next = next?.advanced(by: fields[index].namelen)
          fields[index].value = next
          next = next?.advanced(by: fields[index].valuelen)
        }
        return body(fields.baseAddress.map { UnsafePointer($0) }, fields.count)
      }
    }
  }
}
