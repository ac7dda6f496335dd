internal import CNghttp2
internal import Connect

/// The header fields of one request or trailer, as libnghttp2 wants them. One is kept by a session and used for
/// every request, so that a call allocates nothing here.
///
/// Names and values of most fields are copied one behind the other into one block of memory, which libnghttp2 copies on
/// submission. The pointers are set only then, since the block may move while it grows. Headers come first in the block:
/// requests resemble each other, and those that a request has in common with the one before are not copied again.
struct HTTP2FieldArray: ~Copyable {
  private var fields: UnsafeMutableBufferPointer<nghttp2_nv>
  private var count = 0
  /// Which fields are headers.
  private var headers = 0..<0
  /// The headers whose copies are in the block.
  private var copiedHeaders = Headers()
  /// Which fields have their values behind the headers, in this order: the path, and the authority of a call that has its
  /// own; -1 for none.
  private var late = (path: -1, authority: -1)
  private var bytes: UnsafeMutableRawBufferPointer
  private var byteCount = 0

  private static var initialFields: Int { 32 }
  private static var initialBytes: Int { 2 << 10 }

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
    self.restart()
    switch request.method {
    case .get: self.append(name: ":method", unmovedValue: "GET")
    case .post: self.append(name: ":method", unmovedValue: "POST")
    }
    self.append(name: ":scheme", unmovedValue: scheme)
    // The value of an authority of the call's own follows the path, as it has no place of its own.
    let own = request.destination?.authority == nil ? -1 : self.count
    self.append(
      name: ":authority",
      unmovedValue: own < 0 ? authority : UnsafeBufferPointer(start: nil, count: 0)
    )
    self.late.path = self.count
    self.append(name: ":path", unmovedValue: UnsafeBufferPointer(start: nil, count: 0))
    self.append(request.headers)
    self.fields[self.late.path].valuelen = self.copy(request.target)
    self.late.authority = own
    if let authority = request.destination?.authority { self.fields[own].valuelen = self.copy(authority) }
    if let contentLength { self.appendContentLength(contentLength) }
  }

  /// Replaces all fields with those of a trailer.
  mutating func replaceAll(withTrailers trailers: Headers) {
    self.restart()
    self.append(trailers)
  }

  private mutating func restart() {
    // What is larger was for a request that was refused.
    if self.bytes.count > 2 * NGHTTP2Session.maximumHeaderBlock {
      self.bytes.deallocate()
      self.bytes = .allocate(byteCount: Self.initialBytes, alignment: 1)
      self.forgetHeaders()
    }
    // A header block counts 32 bytes for each field.
    if self.fields.count > NGHTTP2Session.maximumHeaderBlock / 32 {
      self.fields.deallocate()
      self.fields = .allocate(capacity: Self.initialFields)
      self.forgetHeaders()
    }
    self.count = 0
    self.late = (-1, -1)
    self.byteCount = 0
  }

  private mutating func forgetHeaders() {
    self.headers = 0..<0
    self.copiedHeaders = Headers()
  }

  /// Adds a field whose name stays where it is, and whose value does so, too, or is set later.
  private mutating func append(name: StaticString, unmovedValue value: UnsafeBufferPointer<UInt8>) {
    self.makeRoomForField()
    self.fields[self.count] = nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.utf8Start),
      value: UnsafeMutablePointer(mutating: value.baseAddress),
      namelen: name.utf8CodeUnitCount,
      valuelen: value.count,
      flags: UInt8(
        NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue
          | (value.baseAddress == nil ? 0 : NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
      )
    )
    self.count += 1
  }

  private mutating func append(name: StaticString, unmovedValue value: StaticString) {
    self.append(
      name: name,
      unmovedValue: UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount)
    )
  }

  /// The last field, with a value behind that of the path.
  private mutating func appendContentLength(_ length: Int) {
    self.append(name: "content-length", unmovedValue: UnsafeBufferPointer(start: nil, count: 0))
    self.fields[self.count - 1].valuelen = self.copyDecimal(UInt(length))
  }

  /// Copies the digits of a number.
  private mutating func copyDecimal(_ number: UInt) -> Int {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var first = digits.count
      var rest = number
      repeat {
        first -= 1
        digits[first] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      } while rest > 0
      return self.copy(UnsafeBufferPointer(rebasing: digits[first...]))
    }
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

  private mutating func append(_ headers: Headers) {
    let kept = self.keepCopies(of: headers)
    for index in headers.fields.indices.dropFirst(kept) { self.append(headers.fields[index]) }
    if kept < headers.count || kept < self.copiedHeaders.count { self.copiedHeaders = headers }
  }

  /// Keeps the copies of the first headers, as far as they are those of the request before.
  ///
  /// - Returns: How many.
  private mutating func keepCopies(of headers: Headers) -> Int {
    let first = self.count
    // The fields of trailers have other places than those of requests.
    let kept = first == self.headers.lowerBound ? headers.commonPrefix(with: self.copiedHeaders) : 0
    self.headers = first..<first + headers.count
    for index in first..<first + kept {
      self.byteCount += self.fields[index].namelen + self.fields[index].valuelen
    }
    self.count += kept
    return kept
  }

  private mutating func append(_ field: Headers.Field) {
    self.makeRoomForField()
    let nameLength = self.copy(field.name)
    let valueLength = self.copy(field.value)
    self.fields[self.count] = nghttp2_nv(
      name: nil,
      value: nil,
      namelen: nameLength,
      valuelen: valueLength,
      flags: Self.isUnique(field.name) ? UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : 0
    )
    self.count += 1
  }

  /// Gives the finished array to `body`; it holds until `body` returns.
  mutating func withFields<R>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> R) -> R {
    var next = self.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    for index in self.headers {
      self.fields[index].name = next
      next = next?.advanced(by: self.fields[index].namelen)
      self.fields[index].value = next
      next = next?.advanced(by: self.fields[index].valuelen)
    }
    if self.late.path >= 0 {
      self.fields[self.late.path].value = next
      next = next?.advanced(by: self.fields[self.late.path].valuelen)
    }
    if self.late.authority >= 0 {
      self.fields[self.late.authority].value = next
      next = next?.advanced(by: self.fields[self.late.authority].valuelen)
    }
    // The length of the content.
    if self.headers.upperBound < self.count { self.fields[self.headers.upperBound].value = next }
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

extension Headers {
  /// How many of the first fields are those of `other`.
  fileprivate func commonPrefix(with other: Headers) -> Int {
    self.fields.withUnsafeBufferPointer { fields in
      other.fields.withUnsafeBufferPointer { others in
        // The requests of a client share one list, if none has a header of its own.
        if fields.baseAddress == others.baseAddress { return Swift.min(fields.count, others.count) }
        var count = 0
        while count < fields.count, count < others.count, fields[count].hasBytes(of: others[count]) {
          count += 1
        }
        return count
      }
    }
  }
}

extension Headers.Field {
  /// Strings that are equal may differ in bytes, since Swift compares what they mean in Unicode.
  @inline(__always)
  fileprivate func hasBytes(of other: Headers.Field) -> Bool {
    self.name.hasBytes(of: other.name) && self.value.hasBytes(of: other.value)
  }
}

extension String {
  fileprivate func hasBytes(of other: String) -> Bool {
    self.utf8.withContiguousStorageIfAvailable { bytes in
      other.utf8.withContiguousStorageIfAvailable { others in
        guard bytes.count == others.count, let start = bytes.baseAddress, let other = others.baseAddress
        else {
          return bytes.isEmpty && others.isEmpty
        }
        return start == other || memcmp(start, other, bytes.count) == 0
      }
    } == .some(true)
  }
}
