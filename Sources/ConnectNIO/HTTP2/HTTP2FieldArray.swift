internal import CNghttp2
internal import Connect

/// The header fields of one request or trailer, as libnghttp2 wants them. One is kept by a session and used for
/// every request, so that a call allocates nothing here.
///
/// Names and values of most fields are copied one behind the other into one block of memory, which libnghttp2 copies on
/// submission. The pointers are set only then, since the block may move while it grows.
struct HTTP2FieldArray: ~Copyable {
  private var fields: UnsafeMutableBufferPointer<nghttp2_nv>
  private var count = 0
  /// The fields in front of this index point to memory outside of the block.
  private var firstCopied = 0
  private var bytes: UnsafeMutableRawBufferPointer
  private var byteCount = 0

  private static var initialFields: Int { 32 }
  private static var initialBytes: Int { 2 << 10 }
  private static var maximumKeptBytes: Int { 2 * HTTP2Session.maximumHeaderBlock }
  /// As many as fit in a header block, which counts 32 bytes for each.
  private static var maximumKeptFields: Int { HTTP2Session.maximumHeaderBlock / 32 }

  init() {
    self.fields = .allocate(capacity: Self.initialFields)
    self.bytes = .allocate(byteCount: Self.initialBytes, alignment: 1)
  }

  /// The memory that it keeps, in bytes.
  var capacity: Int { self.bytes.count + self.fields.count * MemoryLayout<nghttp2_nv>.stride }

  deinit {
    self.fields.deallocate()
    self.bytes.deallocate()
  }

  /// Names, values and 32 bytes for each field (RFC 9113, section 6.5.2).
  var listSize: Int {
    self.fields[..<self.count].reduce(0) { $0 + $1.namelen + $1.valuelen + 32 }
  }

  /// Replaces all fields with those of a request.
  ///
  /// - Parameter contentLength: Nil for no such field.
  mutating func replaceAll(
    with request: HTTPStreamRequest,
    scheme: UnsafeBufferPointer<UInt8>,
    authority: UnsafeBufferPointer<UInt8>,
    contentLength: Int?
  ) {
    self.removeAll()
    switch request.method {
    case .get: self.append(name: ":method", unmovedValue: "GET")
    case .post: self.append(name: ":method", unmovedValue: "POST")
    }
    self.append(name: ":scheme", unmovedValue: scheme)
    self.append(name: ":authority", unmovedValue: authority)
    self.append(name: ":path", value: request.target)
    self.append(request.headers)
    if let contentLength { self.append(name: "content-length", value: String(contentLength)) }
  }

  mutating func removeAll() {
    self.count = 0
    self.firstCopied = 0
    self.byteCount = 0
    // What is larger was for a request that was refused.
    if self.bytes.count > Self.maximumKeptBytes {
      self.bytes.deallocate()
      self.bytes = .allocate(byteCount: Self.initialBytes, alignment: 1)
    }
    if self.fields.count > Self.maximumKeptFields {
      self.fields.deallocate()
      self.fields = .allocate(capacity: Self.initialFields)
    }
  }

  /// Adds a field whose memory stays where it is until the frame was sent. Only to be used before the first
  /// field that is copied.
  private mutating func append(name: StaticString, unmovedValue value: UnsafeBufferPointer<UInt8>) {
    self.makeRoomForField()
    self.fields[self.count] = nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.utf8Start),
      value: UnsafeMutablePointer(mutating: value.baseAddress),
      namelen: name.utf8CodeUnitCount,
      valuelen: value.count,
      flags: UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
    )
    self.count += 1
    self.firstCopied = self.count
  }

  private mutating func append(name: StaticString, unmovedValue value: StaticString) {
    self.append(
      name: name,
      unmovedValue: UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount)
    )
  }

  /// Whether a header has another value in each request. Remembering it would only fill the peer's table, and displace
  /// what is worth remembering.
  private static func isUnique(_ name: String) -> Bool {
    // By length first: this runs for each header of each call.
    switch name.utf8.count {
    case 11: name == "traceparent"
    case 12: name == "x-request-id" || name == "grpc-timeout"
    case 18: name == "connect-timeout-ms"
    default: false
    }
  }

  mutating func append(name: String, value: String) {
    self.makeRoomForField()
    let nameLength = self.copy(name)
    let valueLength = self.copy(value)
    self.fields[self.count] = nghttp2_nv(
      name: nil,
      value: nil,
      namelen: nameLength,
      valuelen: valueLength,
      flags: Self.isUnique(name) ? UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : 0
    )
    self.count += 1
  }

  mutating func append(_ headers: Headers) {
    let fields = headers.fields
    for index in fields.indices { self.append(name: fields[index].name, value: fields[index].value) }
  }

  /// Gives the finished array to `body`; it holds until `body` returns.
  mutating func withFields<R>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> R) -> R {
    var next = self.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    for index in self.firstCopied..<self.count {
      self.fields[index].name = next
      next = next?.advanced(by: self.fields[index].namelen)
      self.fields[index].value = next
      next = next?.advanced(by: self.fields[index].valuelen)
    }
    return body(self.fields.baseAddress.map { UnsafePointer($0) }, self.count)
  }

  private mutating func copy(_ string: String) -> Int {
    // Swift's own strings are contiguous. Strings from elsewhere may not be.
    if let count = string.utf8.withContiguousStorageIfAvailable({ self.copy($0) }) { return count }
    var string = string
    return string.withUTF8 { self.copy($0) }
  }

  private mutating func copy(_ utf8: UnsafeBufferPointer<UInt8>) -> Int {
    if self.byteCount + utf8.count > self.bytes.count { self.growBytes(by: utf8.count) }
    let target = UnsafeMutableRawBufferPointer(rebasing: self.bytes[self.byteCount...])
    target.copyMemory(from: UnsafeRawBufferPointer(utf8))
    self.byteCount += utf8.count
    return utf8.count
  }

  private mutating func growBytes(by count: Int) {
    let larger = UnsafeMutableRawBufferPointer.allocate(
      byteCount: 2 * self.bytes.count + count,
      alignment: 1
    )
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: self.bytes[..<self.byteCount]))
    self.bytes.deallocate()
    self.bytes = larger
  }

  private mutating func makeRoomForField() {
    guard self.count == self.fields.count else { return }
    let larger = UnsafeMutableBufferPointer<nghttp2_nv>.allocate(capacity: 2 * self.count)
    _ = larger.initialize(from: self.fields)
    self.fields.deallocate()
    self.fields = larger
  }
}
