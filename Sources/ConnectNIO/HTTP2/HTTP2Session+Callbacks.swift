internal import CNghttp2
internal import Connect
internal import NIOCore

// What libnghttp2's callbacks do. They only append to the events and to the streams.

// MARK: - Reading

extension HTTP2Session {
  private func stream(_ id: Int32) -> HTTP2Stream? { self.streams.find(id, in: self.handle) }

  func didReceiveField(
    streamID: Int32,
    name: UnsafeBufferPointer<UInt8>,
    value: UnsafeBufferPointer<UInt8>
  ) {
    guard let stream = self.stream(streamID) else { return }
    let limit = self.configuration.maxHeaderListSize
    if stream.response != .head {
      self.fields.trailers.add(name: name, value: value, limit: limit)
    } else if name.first == UInt8(ascii: ":") {
      self.fields.head.count(name: name, value: value)
      // A response has no other pseudo-header than :status; libnghttp2 has checked that it is three digits.
      stream.status = value.reduce(0) { 10 * $0 + Int($1) - 0x30 }
    } else {
      self.fields.head.add(name: name, value: value, limit: limit)
    }
  }

  func didReceiveData(streamID: Int32, data: UnsafePointer<UInt8>, count: Int) {
    // The connection's window is for all streams, so what one of them holds must not use it up.
    if let handle = self.handle { _ = nghttp2_session_consume_connection(handle.pointer, count) }
    guard let stream = self.stream(streamID), stream.handler != nil else { return }
    stream.unconsumed += count
    let bytes: ByteBuffer
    // Read once, since an access that spans a call would be checked at run time.
    let input = self.input
    if let start = input.start,
      let slice = input.buffer.getSlice(at: input.buffer.readerIndex + (data - start), length: count)
    {
      bytes = slice
    } else {
      bytes = ByteBuffer(bytes: UnsafeBufferPointer(start: data, count: count))
    }
    self.events.append(.bytes(stream, bytes))
  }

  func didReceive(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = header(of: frame)
    self.frameStreamID = nil
    let isEndOfStream = UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
    switch UInt32(header.type) {
    case NGHTTP2_DATA.rawValue:
      if isEndOfStream, let stream = self.stream(header.stream_id) {
        stream.response = .ended
        self.events.append(.end(stream, trailers: Headers()))
      }
    case NGHTTP2_HEADERS.rawValue:
      if let stream = self.stream(header.stream_id) {
        self.didReceiveFields(of: stream, isEndOfStream: isEndOfStream)
      }
    case NGHTTP2_RST_STREAM.rawValue:
      self.stream(header.stream_id)?.isResetByPeer = true
    case NGHTTP2_SETTINGS.rawValue:
      if UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue == 0 { self.events.append(.settings) }
    case NGHTTP2_PING.rawValue:
      if UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue != 0 { self.events.append(.pong) }
    case NGHTTP2_GOAWAY.rawValue:
      self.goAway = HTTP2GoAway(frame.pointee.goaway)
      self.events.append(.goAway)
    default:
      break
    }
  }

  private func didReceiveFields(of stream: HTTP2Stream, isEndOfStream: Bool) {
    let isHead = stream.response == .head
    let size = isHead ? self.fields.head.size : self.fields.trailers.size
    let fields = isHead ? self.fields.head.finish() : self.fields.trailers.finish()
    guard size <= self.configuration.maxHeaderListSize else {
      let limit = self.configuration.maxHeaderListSize
      self.events.append(.failed(stream, .headerListTooLarge(size: size, limit: limit)))
      return
    }
    var trailers = Headers()
    switch stream.response {
    case .head:
      let isFinal = !(100..<200).contains(stream.status)
      if isFinal {
        stream.response = .body
        self.events.append(.head(stream, HTTPResponseHead(status: stream.status, headers: fields)))
      } else {
        stream.informationalCount += 1
        if stream.informationalCount == InformationalResponses.limit + 1 {
          self.events.append(.failed(stream, HTTPStreamFailure(error: InformationalResponses.error)))
        }
      }
    case .body:
      trailers = fields
    case .ended:
      return
    }
    if isEndOfStream {
      stream.response = .ended
      self.events.append(.end(stream, trailers: trailers))
    }
  }

  func didClose(streamID: Int32, errorCode: HTTP2ErrorCode) {
    guard let stream = self.stream(streamID) else { return }
    self.events.append(.closed(stream, errorCode))
    self.streams.remove(stream)
  }
}

// MARK: - Writing

extension HTTP2Session {
  func willSend(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = header(of: frame)
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue:
      self.stream(header.stream_id)?.isHeaderSent = true
    case NGHTTP2_GOAWAY.rawValue:
      self.sentGoAway = HTTP2GoAway(frame.pointee.goaway)
    default:
      break
    }
  }

  func didNotSend(_ frame: UnsafePointer<nghttp2_frame>, libraryError: Int32) {
    let header = header(of: frame)
    guard UInt32(header.type) == NGHTTP2_HEADERS.rawValue, let stream = self.stream(header.stream_id) else {
      return
    }
    if stream.isHeaderSent {
      // Trailers. libnghttp2 leaves the stream as it is, and the request would never end.
      self.events.append(
        .failed(stream, .notSent(libraryError: libraryError, size: stream.requestFieldsSize))
      )
    } else {
      // The stream is closed next, with an error code that does not tell why.
      stream.notSentError = libraryError
    }
  }

  func readBody(of stream: HTTP2Stream, limit: Int, flags: inout UInt32) -> Int {
    let count = min(stream.outbound.byteCount, limit)
    if count == stream.outbound.byteCount {
      switch stream.request {
      case .open:
        guard count > 0 else {
          stream.isDeferred = true
          return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
      case .ending, .ended:
        stream.request = .ended
        flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
        if !stream.requestTrailers.isEmpty {
          flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
          self.submitTrailers(of: stream)
        }
      }
    }
    flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
    return count
  }

  private func submitTrailers(of stream: HTTP2Stream) {
    guard let handle = self.handle else { return }
    self.requestFields.replaceAll(withTrailers: stream.requestTrailers)
    stream.requestFieldsSize = self.requestFields.listSize
    stream.requestTrailers = Headers()
    _ = self.requestFields.withFields { fields, count in
      nghttp2_submit_trailer(handle.pointer, stream.id, fields, count)
    }
  }

  func sendData(of stream: HTTP2Stream, frameHeader: UnsafePointer<UInt8>, count: Int) -> Int32 {
    self.output.append(copying: UnsafeRawBufferPointer(start: frameHeader, count: 9))
    var remaining = count
    while remaining > 0 {
      guard let piece = stream.outbound.next(limit: remaining) else { return callbackFailure }
      remaining -= piece.readableBytes
      self.output.append(piece)
    }
    if stream.owesWritable, stream.outbound.isEmpty {
      stream.owesWritable = false
      self.events.append(.drained(stream))
    }
    return self.output.isFull ? NGHTTP2_ERR_PAUSE.rawValue : 0
  }
}
